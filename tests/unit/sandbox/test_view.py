"""Views and their rendering: data in, data out, on every system."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox import Mode, NetHost, NetNone, Plan, SandboxError, protected_in
from io_harness.sandbox.linux.render import init_argv, overlay_prefix, render
from io_harness.sandbox.linux.staging import STAGE, Stage
from io_harness.sandbox.linux.tools import tool_roots
from io_harness.sandbox.linux.view import (
    Bind,
    Link,
    Mount,
    Overlay,
    Special,
    Text,
    Tmpfs,
    etc_files,
    is_inside,
    mounts,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX paths")
WORK = Path("/work")


def rendered(*view: Mount, host_network: bool = False, nested_users: bool = False) -> list[str]:
    words = render(
        view,
        uid=1000,
        gid=1001,
        host_network=host_network,
        nested_users=nested_users,
        cwd=WORK,
        text_fd=lambda content: 40 + len(content),
        status_fd=10,
        block_fd=11,
        seccomp_fd=12,
    )
    return [os.fsdecode(word) for word in words]


def words(text: str) -> list[str]:
    return text.split()


FIXED = words("""
    --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net
    --disable-userns --uid 1000 --gid 1001 --hostname sandbox --cap-drop ALL --die-with-parent
    --new-session --as-pid-1 --json-status-fd 10 --block-fd 11 --seccomp 12
""")


def test_golden_options() -> None:
    view = (
        Bind(Path("/usr"), Path("/usr")),
        Link(Path("/bin"), "usr/bin"),
        Special(Path("/proc"), "proc"),
        Special(Path("/dev"), "dev"),
        Tmpfs(Path("/tmp"), 1024, mode=0o1777),
        Bind(Path("/host/work"), WORK, writable=True),
        Tmpfs(Path("/work/secret"), 4096, writable=False),
        Text(Path("/work/key"), b"xx"),
    )
    assert rendered(*view) == [
        *FIXED,
        *words("--ro-bind /usr /usr --symlink usr/bin /bin --proc /proc --dev /dev"),
        *words("--perms 1777 --size 1024 --tmpfs /tmp --bind /host/work /work"),
        *words("--perms 0755 --size 4096 --tmpfs /work/secret"),
        *words("--perms 0444 --ro-bind-data 42 /work/key"),
        *words("--remount-ro /work/secret --remount-ro /dev --remount-ro / --chdir /work"),
    ]


def test_the_hosts_network_and_root_are_left_only_when_asked_for() -> None:
    assert "--unshare-net" not in rendered(host_network=True)
    assert "--disable-userns" not in rendered(nested_users=True)
    whole = rendered(Bind(Path("/"), Path("/"), writable=True))
    assert "--remount-ro" not in whole


@pytest.mark.parametrize(
    ("env", "argv"),
    [
        (
            {"A": "1"},
            ["/bin/sh", "-c", 'unset PWD OLDPWD SHLVL; "$@"; exit $?', "sh", "make", "-j"],
        ),
        (
            {"PWD": "/", "OLDPWD": "/", "SHLVL": "1"},
            ["/bin/sh", "-c", '"$@"; exit $?', "sh", "make", "-j"],
        ),
        (
            {"a.b": "1", "PWD": "/", "OLDPWD": "/", "SHLVL": "1"},
            ["/bin/sh", "-c", '"$@"; exit $?', "sh", "/usr/bin/env", "a.b=1", "make", "-j"],
        ),
    ],
)
def test_init(env: dict[str, str], argv: list[str]) -> None:
    assert init_argv(("make", "-j"), env) == argv


def test_overlay_gets_the_directory_as_an_argument() -> None:
    evil = Path("/work/$(touch x); :,b")
    words = overlay_prefix(evil, 77)
    assert words[-2:] == [str(evil), "77"]
    assert str(evil) not in words[-4]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    for name in ("workspace/inner", "reading", "writing"):
        (tmp_path / name).mkdir(parents=True)
    return Plan(
        argv=("true",),
        cwd=tmp_path / "workspace",
        workspace=tmp_path / "workspace",
        read_only_roots=(tmp_path / "reading",),
        writable_roots=(tmp_path / "writing",),
        hidden=(tmp_path / "workspace" / "inner",),
        env={"HOME": str(tmp_path), "PATH": "/usr/bin"},
    )


def test_outer_mounts_come_before_inner(plan: Plan) -> None:
    places = [mount.at for mount in mounts(plan, Path("/etc-copy"))]
    for index, place in enumerate(places):
        assert not any(is_inside(earlier, place) for earlier in places[:index])
    assert len(set(places)) == len(places)


def test_modes(plan: Plan) -> None:
    def at(mode: Mode) -> Mount:
        changed = Plan(
            argv=plan.argv, cwd=plan.cwd, workspace=plan.workspace, mode=mode, env=plan.env
        )
        return next(m for m in mounts(changed, Path("/e")) if m.at == plan.workspace)

    workspace = plan.workspace
    assert at("read_only") == Bind(workspace, workspace, owned=True)
    assert at("workspace_write") == Bind(workspace, workspace, writable=True, owned=True)
    assert isinstance(at("overlay"), Overlay)


def test_home_is_not_the_hosts(plan: Plan, tmp_path: Path) -> None:
    home = next(mount for mount in mounts(plan, Path("/e")) if mount.at == tmp_path)
    assert isinstance(home, Tmpfs)


def test_a_root_that_is_missing_is_named(plan: Plan, tmp_path: Path) -> None:
    broken = Plan(
        argv=plan.argv,
        cwd=plan.cwd,
        workspace=plan.workspace,
        writable_roots=(tmp_path / "gone",),
    )
    with pytest.raises(SandboxError, match=r"writable_roots: .*gone does not exist"):
        mounts(broken, Path("/e"))


def test_hidden_paths(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "keys").mkdir(parents=True)
    (workspace / "keys" / "one").touch()
    (workspace / "link").symlink_to("keys/one")
    (workspace / "away").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    names = ("link", "away", "absent")
    asked = Plan(
        argv=("true",),
        cwd=workspace,
        workspace=workspace,
        hidden=tuple(workspace / name for name in names),
    )
    texts = [mount for mount in mounts(asked, Path("/e")) if isinstance(mount, Text)]
    assert texts == [Text(workspace / "keys" / "one", b"")]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cwd", Path("relative")),
        ("workspace", Path("/a/../b")),
        ("hidden", (Path("relative"),)),
        ("argv", ()),
        ("argv", ("a\0b",)),
        ("env", {"A=B": "1"}),
        ("env", {"A": "\0"}),
    ],
)
def test_a_plan_that_makes_no_sense_names_its_field(field: str, value: object) -> None:
    given: dict[str, object] = {"argv": ("true",), "cwd": WORK, "workspace": WORK}
    with pytest.raises(ValueError, match=field):
        Plan(**(given | {field: value}))  # type: ignore[arg-type]


def test_names_are_resolved_only_with_a_network(plan: Plan) -> None:
    assert "resolv.conf" not in etc_files(plan, "me", 1, 2)
    open_plan = Plan(argv=plan.argv, cwd=plan.cwd, workspace=plan.workspace, net=NetHost())
    assert "resolv.conf" in etc_files(open_plan, "me", 1, 2)
    assert isinstance(plan.net, NetNone)
    assert etc_files(plan, "me", 1, 2)["passwd"].startswith("me:x:1:2:")


PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(
    lambda parts: Path("/srv", *parts)
)


@given(st.lists(st.builds(Bind, PATHS, PATHS, st.booleans(), st.booleans()), max_size=6))
def test_staging_moves_every_source_and_no_place(view: list[Bind]) -> None:
    stage = Stage.of(view)
    for mount, moved in zip(view, stage.view(view, ()), strict=True):
        assert isinstance(moved, Bind)
        assert moved.at == mount.at
        assert moved.writable == mount.writable
        assert is_inside(moved.source, STAGE)
        index, *rest = moved.source.relative_to(STAGE).parts
        root = stage.roots[int(index)]
        assert isinstance(root, Bind)
        assert root.owned == mount.owned
        assert root.source.joinpath(*rest) == mount.source


def test_the_stage_takes_what_commands_write_wherever_it_is() -> None:
    system = Bind(Path("/usr"), Path("/usr"))
    workspace = Bind(Path("/usr/src/app"), Path("/usr/src/app"), writable=True, owned=True)
    overlay = Overlay(Path("/opt/app"), Path("/opt/app"), 1)
    stage = Stage.of((system, workspace, overlay))
    assert set(stage.roots) == {workspace, overlay}
    assert stage.view((system,), ()) == (system,)
    whole = Bind(Path("/"), Path("/"), writable=True)
    assert Stage.of((whole,)).roots == ()


def test_what_is_guarded_within_a_staged_place_comes_along_with_it() -> None:
    workspace = Bind(WORK, WORK, writable=True, owned=True)
    within = Bind(WORK / ".envrc", WORK / ".envrc", owned=True)
    elsewhere = Bind(Path("/srv/git/hooks"), Path("/srv/git/hooks"), owned=True)
    stage = Stage.of((workspace,), (within, elsewhere))
    assert stage.guards == (within,)
    places = {mount.at for mount in stage.view((workspace,), (within, elsewhere))}
    assert places == {workspace.at, elsewhere.at}


@given(PATHS, PATHS)
def test_is_inside_is_what_paths_say(path: Path, root: Path) -> None:
    assert is_inside(path, root) == path.is_relative_to(root)


def test_tools_bring_their_prefix_but_never_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    base = tmp_path / "python-3"
    environment = home / "project-env"
    for directory in (base / "bin", base / "lib", environment / "bin", home / ".local" / "bin"):
        directory.mkdir(parents=True)
    python = base / "bin" / "python3"
    python.touch()
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    (environment / "bin" / "python").symlink_to(python)
    (environment / "pyvenv.cfg").write_text(f"home = {base}/bin\n")
    (home / ".ssh").mkdir()
    search = f"{environment}/bin:{home}/.local/bin:relative:{tmp_path}/missing"
    found = tool_roots({"PATH": search, "HOME": str(home)})
    assert environment in found
    assert base in found
    assert home / ".local" / "bin" in found
    assert not any(is_inside(home / ".ssh", root) for root in found)
    assert not any(is_inside(home / ".local" / "share", root) for root in found)


def test_protected_names_are_in_the_workspace() -> None:
    assert WORK / ".git" / "hooks" in protected_in(WORK)
    assert all(is_inside(path, WORK) for path in protected_in(WORK))
