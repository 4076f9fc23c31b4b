"""tree-sitter's grammar of bash, and what has to be done to a script before and after it."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_MAX_CONTINUATIONS = 500


def ambiguous(char: str) -> bool:
    """Characters that bash and the grammar may take differently: blanks other than space, controls,
    invisible ones."""
    if " " <= char <= "~" or char in "\n\t":
        return False
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")


def parse(source: str) -> Node:
    """The syntax tree's root, with the positions of the source's bytes in UTF-8.

    The scanner of tree-sitter-bash (0.25) looks characters up in tables of the C library that end at
    255, and crashes the process on some beyond. It sees a dot for each byte that isn't ASCII: no blank,
    no part of a name, like those characters in bash.
    """
    ascii_only = bytes(byte if byte < 0x80 else 0x2E for byte in source.encode())
    return Parser(_language()).parse(ascii_only).root_node


def depth(tree: Node) -> int:
    """How deep the tree is."""
    cursor = tree.walk()
    deepest = 0
    while True:
        deepest = max(deepest, cursor.depth)
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return deepest


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


def join_lines(source: str) -> str | None:
    """Remove each backslash before a line's end as bash does: not in comments, single quotes or quoted
    here-documents. From left to right, since what stands before decides what the next one is in. None
    if there are too many."""
    start = 0
    for _ in range(_MAX_CONTINUATIONS):
        found = re.compile(r"(?<!\\)(?:\\\\)*(\\\n)").search(source, start)
        if found is None:
            return source
        at = found.start(1)
        if _is_verbatim(source, at):
            start = found.end()
        else:
            source = source[:at] + source[found.end() :]
            start = max(0, at - 1)
    return None


def _is_verbatim(source: str, at: int) -> bool:
    offset = len(source[:at].encode())
    node = parse(source).descendant_for_byte_range(offset, offset + 1)
    while node is not None:
        if node.type in ("comment", "raw_string", "ansi_c_string"):
            return True
        if node.type == "heredoc_redirect":
            start = next((c for c in node.children if c.type == "heredoc_start"), None)
            body = next((c for c in node.children if c.type == "heredoc_body"), None)
            inside = body is not None and body.start_byte <= offset < body.end_byte
            return inside and start is not None and bool(re.search(rb"['\"\\]", start.text or b""))
        node = node.parent
    return False


def substitutions(node: Node) -> Iterator[Node]:
    """The outermost command and process substitutions in a node."""
    if node.type in ("command_substitution", "process_substitution"):
        yield node
        return
    for child in node.named_children:
        yield from substitutions(child)


def expansions(node: Node) -> Iterator[Node]:
    """The outermost expansions in a word."""
    if "expansion" in node.type or "substitution" in node.type:
        yield node
        return
    for child in node.named_children:
        yield from expansions(child)


def arithmetic(node: Node) -> Iterator[Node]:
    """All arithmetic expansions in a node."""
    if node.type == "arithmetic_expansion":
        yield node
    for child in node.named_children:
        yield from arithmetic(child)


def leaves(node: Node) -> list[Node]:
    """The words of a test command, from left to right."""
    if node.type in ("string", "raw_string", "concatenation", "expansion", "command_substitution"):
        return [node]
    if node.child_count == 0:
        return [node]
    return [leaf for child in node.children for leaf in leaves(child)]
