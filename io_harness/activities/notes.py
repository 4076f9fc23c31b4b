"""What a run's first snapshot says about its source besides the files: kept in the commit's message,
so that every host that has the snapshot has it too."""

from io_harness.workflows.model import Record

_TITLE = "io-harness: the source as it was\n\n"


class SourceNotes(Record):
    """File names here are bytes decoded as Latin-1, which loses none."""

    excludes: str = ""
    """Ignore patterns besides those of the tree's own `.gitignore` files."""
    empty: tuple[str, ...] = ()
    """Empty directories, which git can't hold."""
    derived: tuple[str, ...] = ()
    """Ignored files and folders (environments, installed modules) that the copy had when the agent
    began. What is checked out for verification never has the agent's version of these."""
    namespace: str | None = None
    """Id of the Temporal namespace in which the run is."""
    commit: str | None = None
    """Commit of the source repository that the tree is of; None for a directory."""
    root: str | None = None
    """Of a sub-agent: the first snapshot of its tree's root, whose policy file and instructions hold.
    Those in its own files may be an agent's."""

    def message(self) -> str:
        return _TITLE + self.model_dump_json(exclude_defaults=True)

    @staticmethod
    def read(message: str) -> "SourceNotes":
        """Raises:
        ValueError: this is not the message of a first snapshot.
        """
        if not message.startswith(_TITLE):
            raise ValueError("not the first snapshot of a run")
        return SourceNotes.model_validate_json(message.removeprefix(_TITLE))


def to_note(name: bytes) -> str:
    return name.decode("latin-1")


def from_note(name: str) -> bytes:
    return name.encode("latin-1")
