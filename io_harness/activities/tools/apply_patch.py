"""Applies a patch to several files: all of it or nothing."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from io_harness.workflows.messages import Observation

from .base import Args, Tool
from .beneath import Place
from .blocking import in_thread
from .context import ToolContext, Want
from .errors import AlreadyExists, IdenticalText, InvalidPatch, NoMatch
from .hunks import FilePatch, added_text, apply_hunks
from .loading import Loaded, encoded_new, load, write_wanted
from .patch_format import parse_patch
from .textfile import decode


class ApplyPatchArgs(Args):
    patch: str
    """A unified diff, or the form `*** Begin Patch`."""


class ApplyPatch(Tool[ApplyPatchArgs]):
    name = "apply_patch"
    description = "Change, add, delete or rename files by a patch. All of it applies, or nothing."
    Args = ApplyPatchArgs
    effect = "write"

    async def run(self, args: ApplyPatchArgs, ctx: ToolContext) -> Observation:
        return await in_thread(lambda: self._apply(args, ctx))

    def _apply(self, args: ApplyPatchArgs, ctx: ToolContext) -> Observation:
        patches = parse_patch(args.patch)
        with ExitStack() as held:
            changes = _Planner(ctx, held).plan(patches)
            ctx.require(*(want for change in changes for want in change.wants()))
            _carry_out(changes)
        return Observation(text="\n".join(change.told for change in changes))


@dataclass(frozen=True)
class _Change:
    """One file's change, worked out in memory."""

    source: Place | None
    """The file as it is; None for a new one."""
    loaded: Loaded | None
    target: Place | None
    """Where `data` goes; None if the file is deleted."""
    data: bytes
    executable: bool | None
    told: str

    @property
    def _moved(self) -> bool:
        return self.source is not None and self.target is not self.source

    def wants(self) -> list[Want]:
        before = self.loaded.data if self.loaded else None
        if self.source is None:
            assert self.target is not None
            return [write_wanted(self.target.path, None, self.data)]
        if self.target is None:
            return [write_wanted(self.source.path, before, None)]
        if self._moved:
            return [
                write_wanted(self.source.path, before, None),
                write_wanted(self.target.path, None, self.data),
            ]
        return [write_wanted(self.source.path, before, self.data)]

    def steps(self) -> list[tuple[Callable[[], None], Callable[[], None]]]:
        """Single effects, each with what undoes it."""
        steps: list[tuple[Callable[[], None], Callable[[], None]]] = []
        source, target, loaded = self.source, self.target, self.loaded
        if target is not None:
            existing = None if self._moved or loaded is None else loaded

            def put() -> None:
                target.replace(self.data, existing.status if existing else None, like=source)
                if self.executable is not None:
                    target.set_executable(self.executable)

            def take_back() -> None:
                if existing is None:
                    target.remove(target.existing())
                else:
                    target.replace(existing.data, target.existing())

            steps.append((put, take_back))
        if source is not None and loaded is not None and target is not source:
            steps.append(
                (lambda: source.remove(loaded.status), lambda: source.replace(loaded.data, None))
            )
        return steps


def _carry_out(changes: list[_Change]) -> None:
    done: list[Callable[[], None]] = []
    try:
        for change in changes:
            for step, undo in change.steps():
                step()
                done.append(undo)
    except BaseException:
        for undo in reversed(done):
            undo()
        raise


class _Planner:
    def __init__(self, ctx: ToolContext, held: ExitStack) -> None:
        self._ctx = ctx
        self._held = held
        self._taken: set[str] = set()

    def plan(self, patches: tuple[FilePatch, ...]) -> list[_Change]:
        return [self._change(patch) for patch in patches]

    def _place(self, path: str, *, follow: bool) -> Place:
        place = self._held.enter_context(self._ctx.files.place(path, follow=follow))
        if place.path in self._taken:
            raise InvalidPatch(f"{path} is in the patch twice; put all its hunks in one section")
        self._taken.add(place.path)
        return place

    def _change(self, patch: FilePatch) -> _Change:
        match patch.kind:
            case "add":
                return self._added(patch)
            case "delete":
                return self._deleted(patch)
            case "update":
                return self._updated(patch)

    def _added(self, patch: FilePatch) -> _Change:
        place = self._place(patch.path, follow=True)
        _refuse_existing(place)
        data = added_text(patch).encode("utf-8", "surrogateescape")
        return _Change(None, None, place, data, patch.executable, f"added {patch.path}")

    def _deleted(self, patch: FilePatch) -> _Change:
        place = self._place(patch.path, follow=False)
        loaded = load(place, self._ctx)
        if patch.hunks:
            left = apply_hunks(decode(loaded.data, patch.path), patch.hunks)
            if left:
                raise NoMatch(f"{patch.path} has lines that the patch does not delete")
        return _Change(place, loaded, None, b"", None, f"deleted {patch.path}")

    def _updated(self, patch: FilePatch) -> _Change:
        moved = patch.new_path is not None
        source = self._place(patch.path, follow=not moved)
        loaded = load(source, self._ctx)
        data = loaded.data
        if patch.hunks:
            file = decode(data, patch.path)
            data = encoded_new(file, apply_hunks(file, patch.hunks))
        target, told = source, f"updated {patch.path}"
        if patch.new_path is not None:
            target, told = (
                self._place(patch.new_path, follow=True),
                (f"moved {patch.path} to {patch.new_path}"),
            )
            _refuse_existing(target)
        elif data == loaded.data and patch.executable is None:
            raise IdenticalText(f"the patch leaves {patch.path} as it is")
        return _Change(source, loaded, target, data, patch.executable, told)


def _refuse_existing(place: Place) -> None:
    if place.stat() is not None:
        raise AlreadyExists(f"{place.shown} exists already; update it, or delete it first")
