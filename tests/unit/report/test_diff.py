"""A diff taken apart says the same as the diff."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from io_harness.report.diff import files_of

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
    kept = [line.text for file in files_of(text) for line in file.lines]
    wanted = [
        line for line in text.split("\n")
        if line and not line.startswith(("diff --git ", "index ", "--- ", "+++ ", "@@"))
    ]  # fmt: skip
    assert [line for line in kept if line and not line.startswith("@@")] == wanted


def test_names_of_files() -> None:
    diff = (
        "diff --git a/with space.py b/with space.py\nnew file mode 100644\n"
        "diff --git a/old.py b/new.py\nrename from old.py\n"
        "diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n"
    )
    assert [file.name for file in files_of(diff)] == ["with space.py", "new.py", "bin"]
    assert files_of(diff)[2].lines[0].text == "Binary files a/bin and b/bin differ"
