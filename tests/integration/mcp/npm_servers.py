"""Reference servers from npm, installed once into a cache outside the repository."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

VERSION = "2026.8.31"
_PACKAGES = ("server-everything", "server-filesystem", "server-memory")


def npm_servers() -> Path:
    """The directory of the installed packages. Skips the test where they can't be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm and node are not installed; the reference servers need them")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "io-harness-tests" / f"mcp-servers-{VERSION}"
    root.mkdir(parents=True, exist_ok=True)
    with open(root / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = root / "done"
        if not done.exists():
            wanted = [f"@modelcontextprotocol/{name}@{VERSION}" for name in _PACKAGES]
            installed = subprocess.run(
                [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *wanted],
                cwd=root,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            if installed.returncode:
                pytest.skip(f"npm can't install the reference servers: {installed.stderr[-500:]}")
            done.touch()
    return root


def stdio_server(name: str, *args: str, **more: object) -> dict[str, object]:
    """A contract's entry for one of the packages."""
    root = npm_servers()
    script = (
        root / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    )
    return {
        "kind": "stdio",
        "id": name,
        "command": "node",
        "args": [str(script), *args],
        "read": [str(root)],
        **more,
    }
