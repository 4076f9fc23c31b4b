"""Instructions that a repository's authors left for agents. They are text from the workspace: shown
to the model as such, never taken for the person's own words."""

from .store import SnapshotStore

NAMES = ("AGENTS.md", "CLAUDE.md")
"""The first that the workspace's root has counts."""
CEILING_BYTES = 16 * 1024


async def repository_instructions(store: SnapshotStore, base: str) -> str | None:
    """The instructions in the snapshot `base`, cut at the ceiling; None if there are none."""
    for name in NAMES:
        entry = await store.entry(base, name)
        if entry is None or not entry[0].startswith("100"):
            continue
        data = await store.get_blob(entry[1])
        text = data[:CEILING_BYTES].decode("utf-8", "replace").strip()
        if len(data) > CEILING_BYTES:
            text += f"\n[{len(data) - CEILING_BYTES} more bytes; read {name} for the rest]"
        # The text must not close the element that delimits it.
        text = text.replace("</repository-instructions", "</ repository-instructions")
        return f'<repository-instructions file="{name}">\n{text}\n</repository-instructions>'
    return None
