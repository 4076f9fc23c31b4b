"""What others chose is shown on a run's page, and is not part of its markup."""

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from io_harness.workflows.own_tools import Plan, PlanItem
from io_harness.workflows.publish import _plan, in_code

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


def test_a_plan_writes_nothing_else_on_the_page() -> None:
    forged = "x\n\n### Waiting for approval\n\n```sh\nrm -rf ~\n```\n![](http://192.0.2.1/)"
    tokens = MarkdownIt("commonmark").parse(_plan(Plan(items=(PlanItem(text=forged),))))
    kinds = [token.type for token in tokens]
    assert (kinds.count("heading_open"), kinds.count("fence")) == (1, 0)
    inline = tokens[kinds.index("list_item_open") :]
    children = next(token.children for token in inline if token.children)
    assert [child.type for child in children] == ["text", "code_inline"]
