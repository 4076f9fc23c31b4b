"""A diff taken apart says the same as the diff."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from io_harness.diff import files_of, lines_of

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=12)
LINES = st.lists(LINE, max_size=12)


@given(LINES, LINES)
def test_each_line_is_kept_with_its_number(before: list[str], after: list[str]) -> None:
    body = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    diff = "\n".join(["diff --git a/x b/x", "--- a/x", "+++ b/x", *body, ""])
    (file,) = files_of(diff)
    for line in file.lines:
        if line.old is not None:
            assert before[line.old - 1] == line.text
        if line.new is not None:
            assert after[line.new - 1] == line.text
    assert file.added == sum(line.startswith("+") for line in body)
    assert file.removed == sum(line.startswith("-") for line in body)


@given(st.text())
def test_no_text_is_lost_and_nothing_raises(text: str) -> None:
    whole = [line.whole for line in lines_of(text)]
    assert "\n".join(whole) + "\n" * text.endswith("\n") == text
    heads = [line.whole for line in lines_of(text) if line.kind not in ("file", "head")]
    assert [line.whole for file in files_of(text) for line in file.lines] == heads


def test_nothing_is_no_file() -> None:
    assert files_of("") == []


def test_names_of_files() -> None:
    diff = (
        "diff --git a/with space.py b/with space.py\nnew file mode 100644\n"
        "diff --git a/old.py b/new.py\nrename from old.py\n"
        "diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n"
    )
    assert [file.name for file in files_of(diff)] == ["with space.py", "new.py", "bin"]
    assert files_of(diff)[2].lines[0].text == "Binary files a/bin and b/bin differ"


def test_content_that_looks_like_a_head_is_content() -> None:
    """SQL and Markdown have lines that begin with two dashes or pluses."""
    diff = (
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old remark\n+++ new remark\n select 1\n"
        "--- /dev/null\n+++ b/new.sql\n@@ -0,0 +1 @@\n+select 2\n"
    )
    first, second = files_of(diff)
    assert [(file.name, file.added, file.removed) for file in (first, second)] == [
        ("q.sql", 1, 1), ("new.sql", 1, 0),
    ]  # fmt: skip
    assert [line.text for line in first.lines[1:3]] == ["-- old remark", "++ new remark"]
