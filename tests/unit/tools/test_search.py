"""Searches, each with ripgrep and with the stand-in in Python: the answers are the same."""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.gate import Refused
from io_harness.activities.tools import search_run
from io_harness.activities.tools.errors import InvalidPattern, NotFound, OutsideWorkspace
from io_harness.activities.tools.glob import glob_regex
from tests.unit.tools.conftest import Call

TREE = {
    ".gitignore": "*.log\n/build/\n!keep.log\nnode_modules/\n",
    "a.py": "import os\nneedle = 1\n\nprint(needle)\n",
    ".hidden/b.py": "needle\n",
    "src/.gitignore": "generated.py\n!special.log\n/only-here\n",
    "src/c.py": "x\nNEEDLE\ny\n",
    "src/generated.py": "needle\n",
    "src/special.log": "needle\n",
    "src/deep/generated.py": "needle\n",
    "src/deep/only-here": "needle\n",
    "src/only-here": "needle\n",
    "src/deep/d.ts": "needle\r\nend\r\n",
    "build/e.py": "needle\n",
    "x/build/f.py": "needle\n",
    "noise.log": "needle\n",
    "keep.log": "needle\n",
    "node_modules/g/h.js": "needle\n",
    ".env": "needle = secret\n",
    ".ignore": "a.py\n",
    ".git/config": "needle\n",
    "sub/.git/config": "needle\n",
    "sub-x/y.py": "needle\n",
    "sub/y.py": "needle\n",
}
BINARY = b"needle\0\1\2\nneedle\n"


@pytest.fixture
def tree(root: Path) -> Path:
    # What is above the copy is not asked what to ignore.
    (root.parent / ".gitignore").write_text("*.py\n")
    for name, text in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (root / "binary.bin").write_bytes(BINARY)
    (root / "link.py").symlink_to("a.py")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "fifo.py")
    return root


@pytest.fixture(params=["rg", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(search_run, "ripgrep", lambda: None)
    else:
        assert search_run.ripgrep() is not None
    return str(request.param)


def split(text: str) -> tuple[list[str], str]:
    *lines, notes = text.split("\n")
    return lines, notes


@pytest.mark.usefixtures("tree", "engine")
class TestFind:
    async def test_honours_nested_gitignore(self, call: Call) -> None:
        lines, notes = split((await call("find", glob="*.py")).text)
        assert lines == [".hidden/b.py", "a.py", "src/c.py", "sub/y.py", "sub-x/y.py",
                         "x/build/f.py"]  # fmt: skip
        assert notes == "[6 files]"

    async def test_everything_but_git_and_secrets(self, call: Call) -> None:
        lines, notes = split((await call("find", glob="**", ignored=True)).text)
        expected = {n for n in TREE if "/.git/" not in f"/{n}"} - {".env"} | {"binary.bin"}
        assert set(lines) == expected
        assert notes == f"[{len(expected)} files; 1 files withheld by the policy]"

    @pytest.mark.parametrize(
        ("glob", "path", "found"),
        [
            ("*.{py,ts}", "src", ["src/c.py", "src/deep/d.ts"]),
            ("src/**/*.ts", ".", ["src/deep/d.ts"]),
            ("**/*.ts", "src", ["src/deep/d.ts"]),
            ("deep/*.ts", "src", ["src/deep/d.ts"]),
            ("?.py", ".", [".hidden/b.py", "a.py", "src/c.py", "sub/y.py", "sub-x/y.py",
                           "x/build/f.py"]),
            ("[a-b].py", ".", [".hidden/b.py", "a.py"]),
            ("*.log", ".", ["keep.log", "src/special.log"]),
            ("*.log", "src", ["src/special.log"]),
            ("*.nothing", ".", []),
            ("*.py", "sub", ["sub/y.py"]),
            ("*", "src/deep", ["src/deep/d.ts", "src/deep/only-here"]),
        ],
    )  # fmt: skip
    async def test_globs(self, glob: str, path: str, found: list[str], call: Call) -> None:
        lines, notes = split((await call("find", glob=glob, path=path)).text)
        assert lines == found
        assert notes == f"[{len(found)} file{'' if len(found) == 1 else 's'}]"

    async def test_an_ignored_folder_is_searched_if_named(self, call: Call) -> None:
        lines, notes = split((await call("find", glob="*", path="node_modules/g")).text)
        assert lines == ["node_modules/g/h.js"]
        assert "ignored by .gitignore, and searched as it was named" in notes

    async def test_pages(self, call: Call) -> None:
        lines, notes = split((await call("find", glob="*.py", offset=2, limit=2)).text)
        assert lines == ["src/c.py", "sub/y.py"]
        assert notes == "[6 files; shown from 2; next offset 4]"
        lines, notes = split((await call("find", glob="*.py", offset=4, limit=2)).text)
        assert notes == "[6 files; shown from 4]"

    async def test_bad_globs_and_places(self, call: Call) -> None:
        for glob in ("[a", "{a,b", "a}", "**/[z-a]"):
            with pytest.raises(InvalidPattern):
                await call("find", glob=glob)
        with pytest.raises(NotFound):
            await call("find", glob="*", path="none")
        with pytest.raises(OutsideWorkspace):
            await call("find", glob="*", path="..")


@pytest.mark.usefixtures("tree", "engine")
class TestGrep:
    async def test_matches(self, call: Call) -> None:
        lines, notes = split((await call("grep", pattern="needle")).text)
        assert lines == [
            ".hidden/b.py", "1: needle",
            "a.py", "2: needle = 1", "4: print(needle)",
            "keep.log", "1: needle",
            "src/deep/d.ts", "1: needle",
            "src/deep/only-here", "1: needle",
            "src/special.log", "1: needle",
            "sub/y.py", "1: needle",
            "sub-x/y.py", "1: needle",
            "x/build/f.py", "1: needle",
        ]  # fmt: skip
        assert notes == (
            "[10 matching lines in 9 files; 1 binary files match, not shown: binary.bin; "
            "1 files withheld by the policy]"
        )

    async def test_no_match_is_no_error(self, call: Call) -> None:
        assert (await call("grep", pattern="nowhere to be found")).text == (
            "[0 matching lines in 0 files]"
        )

    async def test_an_invalid_pattern_is_an_error(self, call: Call) -> None:
        with pytest.raises(InvalidPattern, match="regex parse error"):
            await call("grep", pattern="(unclosed")
        lines, _ = split((await call("grep", pattern="print(", literal=True)).text)
        assert lines == ["a.py", "4: print(needle)"]

    async def test_case_context_and_ends_of_lines(self, call: Call) -> None:
        lines, _ = split((await call("grep", pattern="needle", path="src/c.py")).text)
        assert lines == []
        lines, _ = split(
            (await call("grep", pattern="needle$", path="src", ignore_case=True, context=1)).text
        )
        assert lines[:4] == ["src/c.py", "1- x", "2: NEEDLE", "3- y"]
        assert lines[4:7] == ["src/deep/d.ts", "1: needle", "2- end"]

    async def test_globs(self, call: Call) -> None:
        lines, _ = split((await call("grep", pattern="needle", glob="src/**/*.ts")).text)
        assert lines == ["src/deep/d.ts", "1: needle"]
        lines, _ = split((await call("grep", pattern="needle", glob="*.log")).text)
        assert lines == ["keep.log", "1: needle", "src/special.log", "1: needle"]

    async def test_pages_are_honest(self, call: Call) -> None:
        seen: list[str] = []
        offset = 0
        while True:
            text = (await call("grep", pattern="needle", offset=offset, limit=3)).text
            lines, notes = split(text)
            seen += [line for line in lines if re.match(r"\d+: ", line)]
            assert "10 matching lines in 9 files" in notes
            following = re.search(r"next offset (\d+)", notes)
            if following is None:
                break
            offset = int(following[1])
        assert len(seen) == 10

    async def test_long_lines_are_clipped_around_the_match(self, root: Path, call: Call) -> None:
        (root / "min.js").write_text("a" * 5000 + "needle" + "b" * 5000 + "\n")
        (root / "huge.js").write_text("needle" + "c" * 2_000_000 + "\n")
        text = (await call("grep", pattern="needle", glob="*.js")).text
        clipped = next(line for line in text.split("\n") if line.startswith("1: ..."))
        assert "needle" in clipped
        assert len(clipped) < 300
        assert len(text) < 1000

    async def test_a_file_that_is_named_is_searched(self, call: Call) -> None:
        lines, _ = split((await call("grep", pattern="needle", path="noise.log")).text)
        assert lines == ["noise.log", "1: needle"]
        with pytest.raises(Refused):
            await call("grep", pattern="needle", path=".env")

    async def test_other_encodings(self, root: Path, call: Call) -> None:
        (root / "wide.txt").write_bytes("\ufeffschöne needle\n".encode("utf-16-le"))
        (root / "latin.txt").write_bytes(b"sch\xf6ne needle\n")
        lines, _ = split((await call("grep", pattern="needle", glob="*.txt")).text)
        assert lines == ["latin.txt", "1: sch\\xf6ne needle", "wide.txt", "1: schöne needle"]
        lines, _ = split((await call("grep", pattern=r"sch\wne", glob="*.txt")).text)
        assert lines == ["wide.txt", "1: schöne needle"]

    async def test_names_that_are_no_text(self, root: Path, call: Call) -> None:
        (root / "new\nline.txt").write_text("odd name\n")
        (root / "bad\udcff.txt").write_text("odd name\n")
        text = (await call("grep", pattern="odd name")).text
        assert "bad\\xff.txt" in text
        assert "2 matching lines in 2 files" in text
        assert "[2 files]" in (await call("find", glob="*.txt")).text


@pytest.mark.usefixtures("engine")
async def test_a_search_ends_in_time(
    root: Path, call: Call, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if engine == "rg":
        pytest.skip("ripgrep's expressions take linear time")
    monkeypatch.setattr(search_run, "SECONDS", 1.0)
    (root / "a").write_text("first\n" + "a" * 40 + "!\n")
    begun = time.monotonic()
    text = (await call("grep", pattern="first|(a+)+$")).text
    assert time.monotonic() - begun < 20
    assert text.startswith(
        "a\n1: first\n[at least 1 matching line in 1 files; stopped at the limit"
    )


GLOBS = st.lists(
    st.sampled_from(["a", "b", "*", "?", "**", "/", "[ab]", "[!a]", "{a,b}", "."]), min_size=1,
    max_size=6,
).map("".join)  # fmt: skip


@given(GLOBS, st.sampled_from(["a", "b", "a/b", "b/a/b", "ab", "a.b", "a/a/a"]))
def test_globs_never_surprise(glob: str, path: str) -> None:
    try:
        regex = glob_regex(glob)
    except InvalidPattern:
        return
    if "/" not in glob.removeprefix("./").removeprefix("/"):
        assert bool(regex.match(path)) == bool(regex.match(path.rsplit("/", 1)[-1]))
    if set(glob) <= set("ab/."):
        wanted = glob.removeprefix("./").removeprefix("/")
        name = path if "/" in wanted else path.rsplit("/", 1)[-1]
        assert bool(regex.match(path)) == (wanted == name)


@given(
    st.lists(
        st.sampled_from(["a", "b", "ab", "*", "*", "?", "[ab]", "{a,ab}", "{ab,a}", "{*a,b}", "/"]),
        min_size=1,
        max_size=8,
    ).map("".join),
    st.lists(st.sampled_from(["a", "b", "ab", "/"]), min_size=1, max_size=10).map("".join),
)
def test_a_star_that_does_not_go_back_misses_nothing(glob: str, path: str) -> None:
    try:
        regex = glob_regex(glob)
    except InvalidPattern:
        return
    going_back = re.compile(regex.pattern.replace("(?>[^/]*?", "(?:[^/]*"), re.DOTALL)
    assert bool(regex.match(path)) == bool(going_back.match(path))


@pytest.mark.parametrize(
    "glob",
    ["*a" * 10 + "b", "**/" * 4 + "*a*a*b", "{a,b}*" * 4 + "c", "*" * 500 + "b", "**/a" * 50],
)
def test_no_glob_takes_long(glob: str) -> None:
    begun = time.monotonic()
    with suppress(InvalidPattern):
        regex = glob_regex(glob)
        for path in ("a" * 250, "/".join(["a" * 20] * 20)):
            regex.match(path)
    assert time.monotonic() - begun < 5
