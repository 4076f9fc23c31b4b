"""Ignore files above a folder mean the same when they are read from inside it."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from io_harness.activities.git import Git
from io_harness.activities.ignore_rules import anchored, outer_patterns

PATTERNS = [
    "*.log", "dist", "dist/", "/dist", "pkg/dist", "/pkg/dist/", "pkg/*/dist", "*/one/dist", "pkg/one",
    "pkg/", "/pkg", "**/dist", "pkg/**/dist", "**/one/a.txt", "other/dist", "!keep.log",
    "pkg/one/*.txt", "!one", "!/pkg", "#comment", "", "pkg/one/sub/", "/a.txt", "one", "sub/**",
    "pkg/one/**",
]  # fmt: skip
FILES = [
    "a.txt",
    "b.log",
    "keep.log",
    "dist/x",
    "sub/dist/y",
    "sub/a.txt",
    "sub/deep/one/z",
    "one/w",
]


def ignored(top: Path, folder: Path, *options: str) -> set[str]:
    listed = subprocess.run(
        ["git", "-C", str(folder), *options, "ls-files", "-oi", "--exclude-standard", "-z"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return {name for name in listed.stdout.split("\0") if name}


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A repository with a folder pkg/one, and that folder as a repository of its own."""
    top, alone = tmp_path_factory.mktemp("top"), tmp_path_factory.mktemp("alone")
    for folder in (top / "pkg" / "one", alone):
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("x")
    for folder in (top, alone):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return top, alone


@given(lines=st.lists(st.sampled_from(PATTERNS), max_size=4))
@settings(max_examples=50, deadline=None)
def test_patterns_mean_the_same_from_inside(lines: list[str], trees: tuple[Path, Path]) -> None:
    top, alone = trees
    (top / ".gitignore").write_text("\n".join(lines) + "\n")
    rewritten = asyncio.run(outer_patterns(Git(top / ".git", top), top / "pkg" / "one"))
    (alone / ".git" / "info" / "exclude").write_bytes(b"\n".join(rewritten) + b"\n")
    assert ignored(alone, alone) == ignored(top, top / "pkg" / "one")


@given(name=st.text(st.sampled_from("ab *?[]!#\\ -é"), min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
def test_an_anchored_pattern_matches_the_path_and_nothing_else(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    (tree / "sub").mkdir()
    for path in (name, f"sub/{name}", f"{name}x"):
        (tree / path).write_text("x")
    (tree / ".git" / "info" / "exclude").write_bytes(anchored(name.encode()) + b"\n")
    assert ignored(tree, tree) == {name}
