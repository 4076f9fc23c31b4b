"""What others chose is shown on a run's page, and is not part of its markup."""

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from io_harness.workflows.publish import in_code

MARKUP = st.text(alphabet="`a <>[]()#\n*_\\|!~\u202e\u2028", min_size=1, max_size=60).filter(
    str.strip
)


@given(MARKUP)
@example("<mcp> mail 'delete`all`</code><script>alert(1)</script>' 4274")
@example("``")
@example("a\n\n# APPROVED")
def test_a_text_in_code_is_that_text_and_nothing_else(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"### asked: {in_code(text)}\n\nrest")
    heading = tokens[1].children
    assert heading is not None
    assert [token.type for token in heading] == ["text", "code_inline"]
    assert [token.type for token in tokens].count("heading_open") == 1
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    assert heading[1].content.strip() == shown.strip()


def test_a_long_text_is_cut() -> None:
    assert len(in_code("x" * 100_000)) < 400
