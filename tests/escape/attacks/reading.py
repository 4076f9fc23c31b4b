"""Reading secrets, siblings and homes."""

from __future__ import annotations

import glob
import os

from ..inside import Scene, case

KIND = "reading"


def holds_secret(path: str, scene: Scene) -> bool:
    with open(path) as file:
        return scene["secret"] in file.read()


def victim(scene: Scene) -> str:
    """A file outside the workspace that is this case's own."""
    return f"{scene['outside']}/{scene['case']}"


@case(KIND)
def read_by_absolute_path(scene: Scene) -> bool:
    return holds_secret(victim(scene), scene)


@case(KIND)
def read_by_relative_path(scene: Scene) -> bool:
    return holds_secret(os.path.relpath(victim(scene)), scene)


@case(KIND)
def read_by_own_symlink(scene: Scene) -> bool:
    os.symlink(victim(scene), "read-link")
    return holds_secret("read-link", scene)


@case(KIND)
def read_by_own_symlink_to_directory(scene: Scene) -> bool:
    os.symlink(scene["outside"], "read-directory-link")
    return holds_secret(f"read-directory-link/{scene['case']}", scene)


@case(KIND)
def read_by_planted_symlink(scene: Scene) -> bool:
    return holds_secret("planted-file-link", scene)


@case(KIND)
def read_by_planted_directory_symlink(scene: Scene) -> bool:
    return holds_secret(f"planted-directory-link/{scene['case']}", scene)


@case(KIND)
def read_by_hard_link(scene: Scene) -> bool:
    os.link(victim(scene), "read-hard-link")
    return holds_secret("read-hard-link", scene)


@case(KIND)
def read_by_rename_into_workspace(scene: Scene) -> bool:
    os.rename(victim(scene), "renamed-in")
    return holds_secret("renamed-in", scene)


@case(KIND)
def list_outside(scene: Scene) -> bool:
    return scene["case"] in os.listdir(scene["outside"])


@case(KIND)
def learn_that_a_file_exists(scene: Scene) -> bool:
    return os.stat(victim(scene)).st_size > 0


@case(KIND)
def read_sibling_workspace(scene: Scene) -> bool:
    return holds_secret(f"{scene['sibling']}/notes", scene)


@case(KIND)
def list_parent_of_workspace(scene: Scene) -> bool:
    return os.path.basename(scene["sibling"]) in os.listdir("..")


@case(KIND)
def read_netrc(scene: Scene) -> bool:
    return holds_secret(os.path.expanduser("~/.netrc"), scene)


@case(KIND)
def read_ssh_key(scene: Scene) -> bool:
    return holds_secret(os.path.expanduser("~/.ssh/id_ed25519"), scene)


@case(KIND)
def list_home(scene: Scene) -> bool:
    return ".netrc" in os.listdir(os.path.expanduser("~"))


@case(KIND)
def read_cloud_credentials(scene: Scene) -> bool:
    return holds_secret(os.path.expanduser("~/.aws/credentials"), scene)


@case(KIND)
def read_host_tmp(scene: Scene) -> bool:
    return holds_secret(scene["tmp_file"], scene)


@case(KIND)
def read_host_shared_memory(scene: Scene) -> bool:
    return holds_secret(scene["shm_file"], scene)


@case(KIND)
def read_hidden_file(scene: Scene) -> bool:
    return holds_secret("hidden.env", scene)


@case(KIND)
def read_hidden_directory(scene: Scene) -> bool:
    return holds_secret("hidden/key", scene)


@case(KIND)
def read_hidden_by_hard_link(scene: Scene) -> bool:
    os.link("hidden.env", "hidden-link")
    return holds_secret("hidden-link", scene)


@case(KIND, "root")
def read_shadow(scene: Scene) -> bool:
    with open("/etc/shadow") as file:
        return "root" in file.read()


@case(KIND)
def read_unlisted_etc_file(scene: Scene) -> bool:
    with open("/etc/fstab" if os.path.exists("/etc/fstab") else "/etc/hostname") as file:
        return file.read() is not None


@case(KIND)
def read_through_root_of_a_process(scene: Scene) -> bool:
    return any(
        os.path.exists(f"{root}{victim(scene)}") and holds_secret(f"{root}{victim(scene)}", scene)
        for root in glob.glob("/proc/[0-9]*/root")
    )


@case(KIND)
def read_through_directory_of_a_process(scene: Scene) -> bool:
    return holds_secret(f"/proc/{scene['bystander_pid']}/cwd/{scene['case']}", scene)


@case(KIND)
def read_through_descriptor_of_a_process(scene: Scene) -> bool:
    for path in glob.glob(f"/proc/{scene['bystander_pid']}/fd/*"):
        if os.path.isfile(path) and holds_secret(path, scene):
            return True
    return False
