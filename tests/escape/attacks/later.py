"""Files that something on the host would run or obey later."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil

from ..inside import Scene, case
from .writing import write

KIND = "later"


@case(KIND)
def plant_hook(scene: Scene) -> bool:
    return write(".git/hooks/post-checkout")


@case(KIND)
def change_hook(scene: Scene) -> bool:
    return write(".git/hooks/pre-commit")


@case(KIND)
def replace_hooks(scene: Scene) -> bool:
    shutil.rmtree(".git/hooks")
    os.mkdir(".git/hooks")
    return True


@case(KIND)
def move_hooks(scene: Scene) -> bool:
    os.rename(".git/hooks", ".git/old-hooks")
    return True


@case(KIND)
def change_git_configuration(scene: Scene) -> bool:
    with open(".git/config", "a") as file:
        file.write("[core]\n\tfsmonitor = ./run-me\n")
    return True


@case(KIND)
def replace_git_configuration(scene: Scene) -> bool:
    write("config-new")
    os.rename("config-new", ".git/config")
    return True


@case(KIND)
def unlink_git_configuration(scene: Scene) -> bool:
    os.unlink(".git/config")
    return True


@case(KIND)
def link_git_configuration(scene: Scene) -> bool:
    os.link(".git/config", "config-link")
    return write("config-link")


@case(KIND)
def move_repository_away(scene: Scene) -> bool:
    os.rename(".git", ".git-old")
    os.mkdir(".git")
    return True


@case(KIND)
def replace_repository_by_link(scene: Scene) -> bool:
    shutil.move(".git", ".git-moved")
    os.symlink(".git-moved", ".git")
    return True


@case(KIND)
def change_present_envrc(scene: Scene) -> bool:
    return write(".envrc")


@case(KIND)
def rename_over_envrc(scene: Scene) -> bool:
    write("envrc-new")
    os.rename("envrc-new", ".envrc")
    return True


@case(KIND)
def create_absent_configuration(scene: Scene) -> bool:
    return write(".mcp.json")


@case(KIND)
def link_absent_configuration(scene: Scene) -> bool:
    write("mcp-new")
    os.symlink("mcp-new", ".mcp.json")
    return True


@case(KIND)
def create_absent_editor_tasks(scene: Scene) -> bool:
    os.mkdir(".vscode")
    return write(".vscode/tasks.json")


@case(KIND)
def rename_over_absent_directory(scene: Scene) -> bool:
    os.makedirs("idea-new")
    os.rename("idea-new", ".idea")
    return True


@case(KIND)
def create_development_container(scene: Scene) -> bool:
    os.makedirs(".devcontainer")
    return write(".devcontainer/devcontainer.json")


@case(KIND)
def create_commit_hook_of_husky(scene: Scene) -> bool:
    os.makedirs(".husky")
    return write(".husky/pre-commit")


@case(KIND)
def create_own_configuration(scene: Scene) -> bool:
    return write("io-harness.yaml")


@case(KIND)
def change_by_other_name_of_workspace(scene: Scene) -> bool:
    return write("/proc/self/cwd/.git/hooks/post-merge")


@case(KIND)
def redirect_git_configuration(scene: Scene) -> bool:
    """With this file git takes configuration and hooks from where it says."""
    os.makedirs("elsewhere")
    with open("elsewhere/config", "w") as file:
        file.write("[core]\n\tfsmonitor = ./run-me\n")
    return write(".git/commondir")


@case(KIND)
def configure_worktree(scene: Scene) -> bool:
    """Read where `git sparse-checkout` was ever used."""
    return write(".git/config.worktree")


@case(KIND)
def make_hook_executable(scene: Scene) -> bool:
    os.chmod(".git/hooks/pre-commit", 0o755)
    return True


@case(KIND)
def plant_hook_by_open_directory(scene: Scene) -> bool:
    directory = os.open(".git/hooks", os.O_PATH)
    os.close(os.open("post-rewrite", os.O_CREAT | os.O_WRONLY, 0o755, dir_fd=directory))
    return True


def exchange(one: str, other: str) -> bool:
    both, here = 2, -100
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.renameat2(here, one.encode(), here, other.encode(), both) == 0)


@case(KIND)
def exchange_hooks(scene: Scene) -> bool:
    os.makedirs("other-hooks")
    return exchange(".git/hooks", "other-hooks")


@case(KIND)
def exchange_repository(scene: Scene) -> bool:
    os.makedirs("other-repository")
    return exchange(".git", "other-repository")


@case(KIND)
def exchange_absent_configuration(scene: Scene) -> bool:
    """Where it is absent there is nothing to exchange it with, so it is made first."""
    with contextlib.suppress(OSError):
        write(".mcp.json")
    write("mcp-other")
    return exchange(".mcp.json", "mcp-other")
