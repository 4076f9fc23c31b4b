"""The host as the attacks find it: secrets, victims, a bystander process, listeners."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from io_harness.sandbox import Plan, protected_in

from .inside import CASES, command, load

HERE = Path(__file__).parent
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Host:
    """A scene that is set up."""

    root: Path
    workspace: Path
    facts: dict[str, object]
    env_secret: str

    @property
    def facts_file(self) -> Path:
        return self.root / "tools" / "scene.json"

    def plan(self, *, guarded: bool) -> Plan:
        """Runs the attacks against this scene; `guarded` is whether the plan protects and hides
        paths inside the workspace, which not every backend can."""
        return Plan(
            argv=command(sys.executable, str(self.facts_file)),
            cwd=self.workspace,
            workspace=self.workspace,
            read_only_roots=(HERE, self.facts_file.parent, self.root / "read-only"),
            hidden=tuple(self.workspace / name for name in ("hidden", "hidden.env") if guarded),
            protected=protected_in(self.workspace) if guarded else (),
            env={"PATH": os.defpath, "HOME": str(self.root / "home")},
        )

    def outside_digest(self) -> str:
        """Of everything outside the workspace that no attack may change."""
        digest = hashlib.sha256()
        for top in ("outside", "sibling", "read-only", "home"):
            for path in sorted((self.root / top).rglob("*")):
                info = path.lstat()
                digest.update(f"{path} {info.st_mode} {info.st_mtime_ns} {info.st_uid}\n".encode())
                if path.is_file() and not path.is_symlink():
                    digest.update(path.read_bytes())
        return digest.hexdigest()


@contextlib.contextmanager
def host(*, held: bool) -> Iterator[Host]:
    """Sets the scene; `held` is whether the attacks will run in a sandbox."""
    secret, mark, env_secret = (secrets.token_hex(16) for _ in range(3))
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="escape-")))
        _files(root, secret)
        facts: dict[str, object] = {
            "inside": held,
            "secret": secret,
            "mark_reversed": mark[::-1],
            "env_secret_reversed": env_secret[::-1],
            "outside": str(root / "outside"),
            "sibling": str(root / "sibling"),
            "read_only": str(root / "read-only"),
            "host_name": os.uname().nodename,
            "net_namespace": os.readlink("/proc/self/ns/net"),
        }
        if not held:
            facts["template"] = str(root / "workspace")
        facts |= _shared(stack, secret)
        facts |= _listeners(stack, root)
        facts["bystander_pid"] = _bystander(stack, root, mark, env_secret)
        made = Host(root, root / "workspace", facts, env_secret)
        made.facts_file.parent.mkdir()
        made.facts_file.write_text(json.dumps(facts))
        yield made


def _files(root: Path, secret: str) -> None:
    for name in ("outside", "sibling", "read-only", "home/.ssh", "home/.aws", "workspace/hidden"):
        (root / name).mkdir(parents=True)
    load()
    texts = [f"outside/{name}" for name in CASES]
    texts += ["sibling/notes", "read-only/file", "home/.netrc", "home/.ssh/id_ed25519"]
    texts += ["home/.aws/credentials", "home/.profile"]
    texts += ["workspace/hidden.env", "workspace/hidden/key", "workspace/.envrc"]
    for name in texts:
        (root / name).write_text(secret)
    workspace = root / "workspace"
    (workspace / "planted-file-link").symlink_to(root / "outside" / "read_by_planted_symlink")
    (workspace / "planted-directory-link").symlink_to(root / "outside")
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("[core]\n")
    (workspace / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")


def _shared(stack: contextlib.ExitStack, secret: str) -> dict[str, object]:
    """What a host's processes share: /tmp, /dev/shm, System V IPC."""
    paths = {}
    for name, folder in (("tmp_file", tempfile.gettempdir()), ("shm_file", "/dev/shm")):
        path = Path(folder, f"escape-{secrets.token_hex(8)}")
        path.write_text(secret)
        stack.callback(path.unlink, missing_ok=True)
        paths[name] = str(path)
    key = 1 + secrets.randbelow(2**30)
    memory = _libc.shmget(key, 4096, 0o1666)
    queue = _libc.msgget(key, 0o1666)
    stack.callback(_libc.shmctl, memory, 0, None)
    stack.callback(_libc.msgctl, queue, 0, None)
    return {**paths, "shm_key": key}


def _bystander(stack: contextlib.ExitStack, root: Path, mark: str, env_secret: str) -> int:
    """A process with a secret in its environment, a mark on its command line, a file open and
    its directory outside. Same user as the attacker's."""
    wait = "import sys, time; print('ready', flush=True); time.sleep(3600)"
    with open(root / "outside" / "read_through_descriptor_of_a_process") as held_open:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", wait, mark],
            env={"SECRET": env_secret},
            cwd=root / "outside",
            stdout=subprocess.PIPE,
            pass_fds=(held_open.fileno(),),
        )
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    process.stdout.readline()
    return process.pid


def _listeners(stack: contextlib.ExitStack, root: Path) -> dict[str, object]:
    abstract = f"escape-{secrets.token_hex(8)}"
    tcp = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
    facts: dict[str, object] = {"abstract": abstract, "port": tcp.getsockname()[1], "port6": 1}
    served = [tcp]
    with contextlib.suppress(OSError):  # A host without IPv6: the case has no control there.
        tcp6 = socket.create_server(("::1", 0), family=socket.AF_INET6)
        served.append(stack.enter_context(tcp6))
        facts["port6"] = tcp6.getsockname()[1]
    places = ("\0" + abstract, str(root / "outside.sock"), str(root / "workspace/planted-socket"))
    for place in places:
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(place)
        unix.listen()
        served.append(unix)
    facts["outside_socket"] = places[1]
    udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    facts["udp_port"] = udp.getsockname()[1]
    for each in served:
        threading.Thread(target=_answer, args=(each,), daemon=True).start()
    threading.Thread(target=_answer_datagrams, args=(udp,), daemon=True).start()
    stack.callback(_shut, [*served, udp])
    return facts


def _answer(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):  # Shut at the end of the scene.
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"reached")


def _answer_datagrams(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            _, peer = sock.recvfrom(100)
            if peer is None:
                return  # Shut.
            sock.sendto(b"reached", peer)


def _shut(sockets: list[socket.socket]) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
