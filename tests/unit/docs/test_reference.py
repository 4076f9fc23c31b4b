"""docs/reference.md is current, and leaves out nothing that the code can say."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import io_harness
from io_harness.activities.providers.base import Failure
from io_harness.cli.error_codes import CODES
from io_harness.workflows.attributes import MEANINGS, NAMES
from scripts.reference import ENVIRONMENT, PAGE, render

PACKAGE = Path(io_harness.__file__).parent
FUNCTIONS = {"failure", "_refuse", "ModelConfigError"}
"""They take a code first."""
REJECTIONS = {"UnknownRequest", "InvalidContract"}
"""Answers of handlers, where nothing retries."""
CODE = re.compile(r"[A-Z][a-z]+[A-Za-z]*")
NO_CODES = {
    "AgentRun", "CallToolResult", "HarnessModel", "HarnessRepo", "HarnessSpendUsd", "HarnessState",
    "HarnessStep", "LooseT", "AbEHknPS", "SoF", "SoFbD",
}  # fmt: skip


def sources() -> Iterator[ast.AST]:
    for part in ("activities", "workflows"):
        for file in PACKAGE.glob(f"{part}/**/*.py"):
            yield ast.parse(file.read_text(encoding="utf-8"))


def _words(node: ast.AST | None) -> set[str]:
    return {
        each.value
        for each in (ast.walk(node) if node else ())
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and CODE.fullmatch(each.value)
    }


def _types(tree: ast.AST) -> set[str]:
    """Types that annotations name ahead of their definition, or without an import at run time."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found |= _words(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= _words(node.returns)
    return found


def raised(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The codes that calls give to errors, and whether they say that a retry can help."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        more = {keyword.arg: keyword.value for keyword in node.keywords}
        retry = more.get("retry")
        retried = isinstance(retry, ast.Constant) and retry.value is True
        if node.func.id == "ApplicationError":
            final = more.get("non_retryable")
            retried = not (isinstance(final, ast.Constant) and final.value is True)
            found = _words(more.get("type"))
        elif node.func.id == "RunEnded":
            found = _words(more.get("code")) | _words(node.args[2] if len(node.args) > 2 else None)
        elif node.func.id in FUNCTIONS and node.args:
            found = _words(node.args[0])
        else:
            continue
        yield from ((code, retried) for code in found)


RAISED = [each for tree in sources() for each in raised(tree)]


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: uv run python -m scripts.reference"


def test_every_code_that_an_error_is_given_is_listed() -> None:
    assert len(RAISED) > 40
    assert {code for code, _ in RAISED} | set(Failure) <= set(CODES)


def test_every_word_that_looks_like_a_code_is_listed_or_known_not_to_be_one() -> None:
    """Catches a code that is given by way of a variable."""
    compound = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+")
    words = {
        word
        for tree in sources()
        for word in _words(tree) - _types(tree)
        if compound.fullmatch(word)
    }
    assert words - set(CODES) - NO_CODES == set()


def test_every_listed_code_is_in_the_code() -> None:
    written = {word for tree in sources() for word in _words(tree)}
    assert set(CODES) - written == set()


def test_what_is_retried_is_told_so() -> None:
    assert {f.value for f in Failure if f.retryable} == {
        code for code in set(Failure) if CODES[code].retried
    }
    again = {code for code, retried in RAISED if retried} - REJECTIONS
    assert {code for code in again if not CODES[code].retried} == set()
    never = {code for code, _ in RAISED} - {code for code, retried in RAISED if retried}
    assert {code for code in never if CODES[code].retried} == set()


def test_every_variable_that_is_read_is_listed() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    assert set(re.findall(r"IO_HARNESS_[A-Z_]+", text)) <= set(ENVIRONMENT)
    read = set(re.findall(r"environ(?:\.get\(|\[)[\n ]*\"([A-Z_]+)\"", text))
    assert len(read) > 8
    told = PAGE.read_text(encoding="utf-8").partition("## Environment")[2].partition("## ")[0]
    assert {name for name in read if f"`{name}`" not in told} <= {"HOME", "LOCALAPPDATA", "PATH"}
    assert set(NAMES) == set(MEANINGS)


def test_every_link_of_the_page_leads_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    anchors = {head.lower().replace(" ", "-") for head in re.findall(r"^#+ (.*)$", text, re.M)}
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= anchors


def test_no_heading_is_there_twice() -> None:
    heads = re.findall(r"^#+ (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert sorted(heads) == sorted(set(heads))
