"""Paths, commands and hosts against patterns."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from io_harness.workflows.host_patterns import check_host_pattern, host_matches, normal_host
from io_harness.workflows.patterns import (
    PatternError,
    check_command_pattern,
    check_path_pattern,
    command_matches,
    normal_path,
    path_matches,
)

PATHS = [
    # pattern, path, read narrowly, read widely
    ("*.py", "a.py", True, True),
    ("*.py", "a/b/c.py", True, True),
    ("*.py", "a.pyc", False, False),
    ("*.py", "A.PY", False, True),
    ("*.py", "/etc/a.py", False, True),
    ("*.py", "x.py/inside", False, True),
    (".env*", "app/.env.local", True, True),
    (".env*", "app/.ENV", False, True),
    (".env", "app/.env/x", True, True),
    ("/src", "src", True, True),
    ("/src", "src/a/b", True, True),
    ("/src", "x/src/a", False, False),
    ("src/a.py", "src/a.py", True, True),
    ("src/a.py", "x/src/a.py", False, False),
    ("src/*", "src/a", True, True),
    ("src/*", "src/a/b", False, True),
    ("src/*/", "src/a/b", True, True),
    ("src/**", "src/a/b", True, True),
    ("src/**", "src", False, False),
    ("src/**", "src/..a", True, True),
    ("**/test", "a/b/test", True, True),
    ("**/test", "test", True, True),
    ("**/test", "/abs/test", False, True),
    ("a/**/b", "a/b", True, True),
    ("a/**/b", "a/x/y/b", True, True),
    ("a/**/b", "a/xb", False, False),
    ("**", "anything/at/all", True, True),
    ("**", ".", True, True),
    ("**", "/etc/passwd", False, True),
    ("*", "a/b", True, True),
    ("?.c", "a.c", True, True),
    ("?.c", "/.c", False, False),
    ("[a-c]x", "bx", True, True),
    ("[!a-c]x", "bx", False, False),
    ("[!a-c]x", "dx", True, True),
    ("\\*.py", "*.py", True, True),
    ("\\*.py", "a.py", False, False),
    ("//etc/**", "/etc/passwd", True, True),
    ("//etc", "/etc/passwd", True, True),
    ("//etc", "etc/passwd", False, False),
    ("~/.ssh", "~/.ssh/id", True, True),
    ("a\nb", "a\nb", None, None),
    (".git", ".g\u200cit/config", False, True),
    (".env", ".ｅｎｖ", False, True),
    ("straße", "STRASSE", False, True),
]


@pytest.mark.parametrize(("pattern", "path", "narrow", "wide"), PATHS)
def test_path(pattern: str, path: str, narrow: bool | None, wide: bool | None) -> None:
    if narrow is None:
        with pytest.raises(PatternError):
            check_path_pattern(pattern)
        return
    check_path_pattern(pattern)
    assert (path_matches(pattern, path, wide=False) == "yes") is narrow
    assert (path_matches(pattern, path, wide=True) == "yes") is wide


@pytest.mark.parametrize(
    "pattern",
    ["", " ", "a ", "!a", "[a", "a\\", "../a", "a/./b", "/", "~root/x", "a" * 600, "**/" * 5 + "a",
     "[z-a]", "a[/]b", "a\x00b", "a\u200bb"],
)  # fmt: skip
def test_a_path_pattern_that_cannot_be_meant(pattern: str) -> None:
    with pytest.raises(PatternError):
        check_path_pattern(pattern)


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("a/./b//c", "a/b/c"),
        ("a/../b", "b"),
        ("/proc/self/root/etc/passwd", "/etc/passwd"),
        ("/proc/1/root/proc/self/root/etc/x", "/etc/x"),
        ("/proc/thread-self/root/etc/x", "/etc/x"),
        ("/proc/self/task/12/root/etc/x", "/etc/x"),
        ("/proc/self/root", "/"),
        ("/proc/self/rooted", "/proc/self/rooted"),
        ("//etc/x", "/etc/x"),
        ("./a", "a"),
    ],
)
def test_normal_path(path: str, normal: str) -> None:
    assert normal_path(path) == normal


@pytest.mark.parametrize("path", ["", "..", "../a", "a/../../b", "a\0b"])
def test_a_path_that_is_not_resolved(path: str) -> None:
    with pytest.raises(PatternError):
        normal_path(path)


names = st.text("abE.-_ ", min_size=1, max_size=3).filter(
    lambda n: n not in (".", "..") and n == n.strip(" ") and not n.startswith("-")
)
globs = st.one_of(
    names, st.sampled_from(["*", "**", "?", "a*", "*b", "[ab]", "[!a]", "*.*", "a?b", "*a*b*"])
)


@given(
    st.lists(globs, min_size=1, max_size=4),
    st.booleans(),
    st.lists(st.lists(names, min_size=1, max_size=4), min_size=1, max_size=8),
)
def test_read_narrowly_it_matches_no_more(
    parts: list[str], anchored: bool, paths: list[list[str]]
) -> None:
    pattern = ("/" if anchored else "") + "/".join(parts)
    for path in ("/".join(p) for p in paths):
        if path_matches(pattern, path, wide=False) == "yes":
            assert path_matches(pattern, path, wide=True) == "yes"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@given(
    st.lists(globs, min_size=1, max_size=4).filter(lambda parts: parts.count("**") <= 4),
    st.booleans(),
    st.lists(st.lists(names, min_size=1, max_size=4), min_size=4, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_read_widely_it_matches_what_gitignore_matches(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[str],
    anchored: bool,
    paths: list[list[str]],
) -> None:
    """git itself is the oracle."""
    pattern = ("/" if anchored else "") + "/".join(parts)
    repository = tmp_path_factory.getbasetemp() / "gitignore"
    if not repository.exists():
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / ".gitignore").write_text(pattern + "\n")
    given_paths = [
        path for path in ("/".join(p) for p in paths) if not path.casefold().startswith(".git")
    ]
    ignored = _ignored(repository, given_paths)
    for path in given_paths:
        assert (path_matches(pattern, path, wide=True) == "yes") == (path in ignored), path


def _ignored(repository: Path, paths: list[str]) -> set[str]:
    found = subprocess.run(
        ["git", "-c", "core.ignorecase=true", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=repository,
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
    )
    return set(found.stdout.decode().split("\0"))


COMMANDS = [
    # pattern, command, read narrowly, read widely
    ("git push", "git push", "yes", "yes"),
    ("git push", "git push origin main", "yes", "yes"),
    ("git push *", "git push", "yes", "yes"),
    ("git push $", "git push", "yes", "yes"),
    ("git push $", "git push origin", "no", "no"),
    ("git push", "git status", "no", "no"),
    ("git push", "git", "no", "no"),
    ("git push", "git pushy", "no", "no"),
    ("git push", "git log push", "no", "no"),
    ("git push", "git --no-pager push", "no", "yes"),
    ("git push", "git -C x push", "no", "yes"),
    ("git push", "git --git-dir=x push", "no", "yes"),
    ("git push --force", "git push origin --force", "no", "yes"),
    ("git ** --force", "git push origin --force", "yes", "yes"),
    ("git * main", "git checkout main", "yes", "yes"),
    ("git * main", "git checkout -f main", "no", "yes"),
    ("rustc", "rustc a.rs", "yes", "yes"),
    ("rustc", "./x/rustc a.rs", "no", "yes"),
    ("rustc", "/usr/bin/rustc a.rs", "yes", "yes"),
    ("rustc", "/opt/evil/rustc a.rs", "no", "yes"),
    ("rustc", "RUSTC a.rs", "no", "yes"),
    ("rustc", "rustc.exe a.rs", "no", "yes"),
    ("./run.sh", "./run.sh x", "yes", "yes"),
    ("./run.sh", "run.sh x", "no", "no"),
    ("python*", "python3.12 x.py", "yes", "yes"),
    ("*", "anything at all", "yes", "yes"),
    ("*", "./anything", "yes", "yes"),
    ("*", "<dynamic> x", "no", "yes"),
    ("<dynamic>", "<dynamic> x", "yes", "yes"),
    ("<dynamic> source .venv/bin/activate", "<dynamic> source .venv/bin/activate", "yes", "yes"),
    ("<destroy>", "<discard> git reset --hard", "no", "no"),
    ("git push", "<dynamic> git push", "no", "no"),
    ("'<dynamic>'", "<dynamic>", "no", "no"),
    ("git push", "git <dynamic>", "no", "maybe"),
    ("git push", "git <dynamic> x", "no", "maybe"),
    ("git push", "git push <dynamic>", "yes", "yes"),
    ("git push", "ls <dynamic>", "no", "no"),
    ("git push --force", "git push <dynamic>", "no", "maybe"),
    ("echo 'a b'", "echo 'a b'", "yes", "yes"),
    ("echo a b", "echo 'a b'", "no", "no"),
    ("echo '*'", "echo x", "no", "no"),
    ("echo '*'", "echo '*'", "yes", "yes"),
    ("echo *x", "echo a/bx", "yes", "yes"),
    ("<mcp> github *", "<mcp> github create_issue", "yes", "yes"),
    ("<mcp> github create_issue $", "<mcp> github create_issue", "yes", "yes"),
    ("<mcp> github", "<mcp> gitlab create_issue", "no", "no"),
]


@pytest.mark.parametrize(("pattern", "command", "narrow", "wide"), COMMANDS)
def test_command(pattern: str, command: str, narrow: str, wide: str) -> None:
    check_command_pattern(pattern)
    assert command_matches(pattern, command, wide=False) == narrow
    assert command_matches(pattern, command, wide=True) == wide


@pytest.mark.parametrize("pattern", ["", "$", "<what>", "a 'b", "** ** ** ** ** a", "a [b", "a\nb"])
def test_a_command_pattern_that_cannot_be_meant(pattern: str) -> None:
    with pytest.raises(PatternError):
        check_command_pattern(pattern)


HOSTS = [
    # pattern, target, read narrowly, read widely
    ("example.com", "example.com:443", True, True),
    ("example.com", "example.com:80", True, True),
    ("example.com", "example.com:22", False, True),
    ("example.com:22", "example.com:22", True, True),
    ("example.com:22", "example.com:443", False, False),
    ("example.com:*", "example.com:9", True, True),
    ("example.com", "a.example.com:443", False, False),
    ("*.example.com", "a.example.com:443", True, True),
    ("*.example.com", "a.b.example.com:443", True, True),
    ("*.example.com", "example.com:443", False, False),
    ("*.example.com", "evilexample.com:443", False, False),
    ("*.example.com", ".example.com:443", False, False),
    ("*", "example.com:443", True, True),
    ("*", "example.com:22", False, True),
    ("*:*", "example.com:22", True, True),
    ("192.0.2.1", "192.0.2.1:80", True, True),
    ("[2001:db8::1]:443", "[2001:db8::1]:443", True, True),
    ("[2001:db8::1]", "[2001:db8::2]:443", False, False),
]


@pytest.mark.parametrize(("pattern", "target", "narrow", "wide"), HOSTS)
def test_host(pattern: str, target: str, narrow: bool, wide: bool) -> None:
    check_host_pattern(pattern)
    assert (host_matches(pattern, target, wide=False) == "yes") is narrow
    assert (host_matches(pattern, target, wide=True) == "yes") is wide


@pytest.mark.parametrize(
    "pattern",
    ["EXAMPLE.com", "example.com.", "a.*.com", "*example.com", "**", "exämple.com", "0x7f.1",
     "127.1", "1", "example.com:0", "example.com:99999", "example.com:http", "[::0:1]", "[::1%eth0]",
     "http://example.com", "example.com/x", "a b", "*.192.0.2.1", "user@example.com"],
)  # fmt: skip
def test_a_host_pattern_that_is_not_canonical(pattern: str) -> None:
    with pytest.raises(PatternError):
        check_host_pattern(pattern)


@pytest.mark.parametrize(
    ("target", "normal"),
    [
        ("Example.COM:443", "example.com:443"),
        ("example.com.:443", "example.com:443"),
        ("[2001:DB8:0::1]:80", "[2001:db8::1]:80"),
        ("example.com:0443", "example.com:443"),
    ],
)
def test_normal_host(target: str, normal: str) -> None:
    assert normal_host(target) == normal


@pytest.mark.parametrize(
    "target",
    ["example.com", "example.com:", ":443", "127.1:80", "0x7f.0.0.1:80", "2130706433:80", "a..b:80",
     "[::1%lo]:80", "exämple.com:80", "a@b.com:80", "a b:80", "example.com:443:1", "\0a:80"],
)  # fmt: skip
def test_a_target_that_is_no_canonical_host(target: str) -> None:
    with pytest.raises(PatternError):
        normal_host(target)
