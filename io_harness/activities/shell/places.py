"""Folders and paths as a command sees them."""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from .script import Folders


@dataclass(frozen=True)
class Places:
    root: str
    """Absolute path of the workspace."""
    home: str
    """Absolute path of the home folder."""
    private: tuple[str, ...]
    """Folders that the sandbox keeps to the command."""
    resolve: Callable[[str], str]
    """Absolute path to the absolute path without symbolic links."""

    def joined(self, text: str, folders: Folders) -> Folders:
        """What a path may mean from each of the folders; None if that can't be known."""
        if text.startswith("/"):
            return frozenset({"/" + posixpath.normpath(text).lstrip("/")})
        if folders is None:
            return None
        return frozenset(posixpath.normpath(posixpath.join(folder, text)) for folder in folders)

    def inside(self, path: str) -> bool:
        return path == self.root or path.startswith(f"{self.root}/")

    def is_private(self, path: str) -> bool:
        return not self.inside(path) and any(
            path == own or path.startswith(f"{own}/") for own in self.private
        )

    def placed(self, path: str) -> str:
        """Relative to the workspace if inside, absolute outside."""
        if path == self.root:
            return "."
        return path[len(self.root) + 1 :] if self.inside(path) else path
