"""The main job on a public package: a bug planted in its source, its own tests as the criterion."""

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from io_harness.workflows.result import Landed, Outcome
from tests.scripted import call, turn

from .conftest import Start

PACKAGE = "cachetools==5.5.2"
RIGHT = """\
        value = cache_getitem(self, key)
        if key in self:  # __missing__ may not store item
            self.__update(key)
        return value

    def __setitem__(self, key, value, cache_setitem=Cache.__setitem__):
        cache_setitem(self, key, value)
        self.__update(key)

    def __delitem__(self, key, cache_delitem=Cache.__delitem__):
        cache_delitem(self, key)
        del self.__order[key]

    def popitem(self):
        \"\"\"Remove and return the `(key, value)` pair least recently used.\"\"\"
"""
WRONG = RIGHT.replace(
    """\
        value = cache_getitem(self, key)
        if key in self:  # __missing__ may not store item
            self.__update(key)
        return value
""",
    """\
        return cache_getitem(self, key)
""",
)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's source distribution, from the registry that pip uses."""
    pip = shutil.which("pip")
    if pip is None:
        pytest.skip("pip is not installed, so no package can be fetched")
    folder = tmp_path_factory.mktemp("sdist")
    command = [
        pip,
        "download",
        "-q",
        "--no-deps",
        "--no-binary",
        ":all:",
        "-d",
        str(folder),
        PACKAGE,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    except subprocess.TimeoutExpired:
        pytest.skip("the package registry did not answer in time")
    if done.returncode:
        pytest.skip(f"the package registry did not give {PACKAGE}: {done.stderr[-300:]}")
    return next(folder.glob("*.tar.gz"))


@pytest.fixture
def package(archive: Path, tmp_path: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    root = next(tmp_path.glob("cachetools-*"))
    module = root / "src" / "cachetools" / "__init__.py"
    source = module.read_text()
    assert source.count(RIGHT) == 1
    module.write_text(source.replace(RIGHT, WRONG))
    return root


@pytest.mark.timeout(300)
async def test_a_planted_bug_in_a_public_package_is_found_and_mended(
    start: Start, package: Path
) -> None:
    module = package / "src" / "cachetools" / "__init__.py"
    tests = "PYTHONPATH=src python -m unittest -q"
    run = await start(
        turn(
            call("list_files", path=".", shows=("src", "tests")),
            call("run_command", command=tests, shows=("test_lru", "exit")),
        ),
        turn(
            call("grep", pattern="class LRUCache", path="src", shows=("__init__.py",)),
            call("read_file", path="src/cachetools/__init__.py", shows=("least recently used",)),
        ),
        turn(
            call("edit_file", path="src/cachetools/__init__.py", old=WRONG, new=RIGHT),
            call("run_command", command=tests, shows=("OK",)),
        ),
        turn(
            call("finish", summary="reading an item of an LRUCache makes it the most recent again")
        ),
        goal="The test suite fails. Find the bug in src and mend it.",
        workspace={"kind": "directory", "path": str(package)},
        verification={"kind": "command", "run": tests, "protect": ["tests"]},
    )
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert isinstance(result.landing, Landed)
    assert [file.path for file in result.landing.files] == ["src/cachetools/__init__.py"]
    assert RIGHT in module.read_text()
    assert result.verification is not None
    assert "216 tests" in result.verification.checks[0].detail
