"""A shell script taken apart: which simple commands and redirections it holds, and in which folders
they may run. Structure comes from tree-sitter-bash, the meaning of words from `words`.

What is parsed differently here than in bash would be a hole, so whatever the grammar did not fully
understand is reported as opaque, besides everything that was found in it.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tree_sitter import Node

from .grammar import (
    ambiguous,
    arithmetic,
    depth,
    expansions,
    join_lines,
    leaves,
    parse,
    substitutions,
)
from .values import Values
from .words import Arg, decode, document_openings, is_one_word, openings

Folders = frozenset[str] | None
"""In which absolute folders a command may find itself; None if that can't be known."""

MAX_LENGTH = 100_000
_MAX_FOLDERS = 8
_MAX_DEPTH = 100
_RESERVED = frozenset(
    {"{", "}", "!", "then", "do", "done", "fi", "else", "elif", "esac", "in", "]]"}
)
"""Taken for a command's name, one of these says that the grammar lost its way."""


class After(NamedTuple):
    """Where the shell may be after a command."""

    success: Folders
    any: Folders


@dataclass(frozen=True)
class Assignment:
    name: str
    value: Arg


class Reader(Protocol):
    """Who is told what a script holds."""

    home: str
    values: Values

    def command(
        self, assignments: list[Assignment], args: list[Arg], folders: Folders
    ) -> After: ...

    def redirect(self, operator: str, target: Arg, folders: Folders) -> None: ...

    def opaque(self, what: str) -> None: ...


def read_script(source: str, reader: Reader, folders: Folders) -> After:
    """Tell `reader` every simple command and redirection of the script that may come to run."""
    joined = join_lines(source) if _is_text(source) else None
    if joined is None:
        reader.opaque(source[:MAX_LENGTH].encode(errors="replace").decode())
        return After(None, None)
    tree = parse(joined)
    if any(ambiguous(char) for char in source) or tree.has_error:
        reader.opaque(source)
    if depth(tree) > _MAX_DEPTH:
        reader.opaque(source)
        return After(None, None)
    reader.values.script(tree)
    return _Walk(joined.encode(), reader).visit(tree, folders)


def _is_text(source: str) -> bool:
    return len(source) <= MAX_LENGTH and not any("\ud800" <= char <= "\udfff" for char in source)


def both(one: Folders, other: Folders) -> Folders:
    if one is None or other is None:
        return None
    union = one | other
    return union if len(union) <= _MAX_FOLDERS else None


class _Walk:
    def __init__(self, source: bytes, reader: Reader) -> None:
        self.source = source
        self.reader = reader

    def text(self, start: int, end: int) -> str:
        return self.source[start:end].decode(errors="replace")

    def raw(self, node: Node) -> str:
        return self.text(node.start_byte, node.end_byte)

    def word(self, node: Node) -> Arg:
        return decode(self.raw(node), self.reader.home)

    def argument(self, node: Node) -> Arg:
        """A word of a simple command, which bash must take for one, too."""
        masked = bytearray(self.source[node.start_byte : node.end_byte])
        for inner in expansions(node):
            text = self.raw(inner)
            if inner.type == "expansion" and re.search(r"['\"].*[;|&\n]", text, re.DOTALL):
                self.reader.opaque(text)
            start = inner.start_byte - node.start_byte
            masked[start : inner.end_byte - node.start_byte] = b"x" * len(text.encode())
        if not is_one_word(masked.decode(errors="replace")):
            self.reader.opaque(self.raw(node))
        return self.word(node)

    def visit(self, node: Node, folders: Folders) -> After:
        match node.type:
            case "command":
                return self._command(node, [], folders)
            case "redirected_statement":
                body = node.child_by_field_name("body")
                return self._redirected(body, node.children_by_field_name("redirect"), folders)
            case "list":
                return self._list(node, [], folders)
            case "pipeline":
                return self._pipeline(node, [], folders)
            case "subshell" | "command_substitution" | "process_substitution":
                self._children(node, folders)
                return After(folders, folders)
            case "for_statement" | "while_statement" | "c_style_for_statement":
                return self._loop(node, folders)
            case "function_definition":
                self._children(node, None)  # it runs wherever it is called
                return After(folders, folders)
            case "variable_assignment":
                self._nested(node, folders)
                return self.reader.command([self._assignment(node)], [], folders)
            case "declaration_command" | "unset_command":
                return self._declaration(node, folders)
            case "test_command":
                return self._test(node, folders)
            case "heredoc_body":
                self._nested(node, folders)
                return After(folders, folders)
            case _:
                return self._children(node, folders)

    def _children(self, node: Node, folders: Folders) -> After:
        for child in node.named_children:
            folders = both(folders, self.visit(child, folders).any)
        return After(folders, folders)

    def _list(self, node: Node, redirects: list[Node], folders: Folders) -> After:
        parts = node.named_children
        joins = [child.type for child in node.children if child.type in ("&&", "||")]
        if len(joins) != len(parts) - 1:
            self.reader.opaque(self.raw(node))
            return self._children(node, folders)
        after = self._redirected(parts[0], [] if joins else redirects, folders)
        for index, (join, part) in enumerate(zip(joins, parts[1:], strict=True)):
            start = after.success if join == "&&" else after.any
            own = redirects if index == len(joins) - 1 else []
            following = self._redirected(part, own, start)
            success = following.success if join == "&&" else both(after.success, following.success)
            after = After(success, both(after.any, following.any))
        return after

    def _pipeline(self, node: Node, redirects: list[Node], folders: Folders) -> After:
        """Each part is a shell of its own."""
        *parts, last = node.named_children
        for part in parts:
            self.visit(part, folders)
        self._redirected(last, redirects, folders)
        return After(folders, folders)

    def _loop(self, node: Node, folders: Folders) -> After:
        after = self._children(node, folders)
        if after.any != folders:  # each round begins where the last one ended
            self._children(node, None)
            return After(None, None)
        return after

    # --- simple commands ----------------------------------------------------------------------

    def _command(self, node: Node, more: list[Arg], folders: Folders) -> After:
        assignments: list[Assignment] = []
        args: list[Arg] = []
        self._check_gaps(node)
        for child in node.children:
            self._nested(child, folders)
            match child.type:
                case "variable_assignment" if not args:
                    assignments.append(self._assignment(child))
                case "file_redirect" | "herestring_redirect":
                    args += self._redirect(child, folders)
                case _:
                    args.append(self.argument(child))
        return self.reader.command(assignments, args + more, folders)

    def _check_gaps(self, node: Node) -> None:
        """Words are what blanks part; where the grammar saw a border without a blank, bash doesn't."""
        for before, after in zip(node.children, node.children[1:], strict=False):
            gap = self.text(before.end_byte, after.start_byte)
            redirects = "redirect" in before.type or "redirect" in after.type
            if gap.strip(" \t") or (not gap and not redirects):
                self.reader.opaque(self.raw(node))
                return
        name, *words = [self.raw(child) for child in node.children] or [""]
        compound = name in ("time", "coproc") and any(word in ("!", "{", "(") for word in words)
        if compound or name in _RESERVED:
            self.reader.opaque(self.raw(node))

    def _assignment(self, node: Node) -> Assignment:
        name, _, _ = self.raw(node).partition("=")
        value = node.child_by_field_name("value")
        name = name.removesuffix("+").split("[")[0]
        return Assignment(name, self.word(value) if value is not None else Arg(""))

    def _declaration(self, node: Node, folders: Folders) -> After:
        """declare, export, local, readonly, typeset, unset."""
        assignments: list[Assignment] = []
        args: list[Arg] = []
        for child in node.children:
            self._nested(child, folders)
            if child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            args.append(self.word(child))
        self.reader.command(assignments, [], folders)
        return self.reader.command([], args, folders)

    def _test(self, node: Node, folders: Folders) -> After:
        self._nested(node, folders)
        words = [Arg(self.raw(node.children[0]))]
        words += [self.word(leaf) for leaf in leaves(node) if leaf.is_named]
        return self.reader.command([], words, folders)

    def _nested(self, node: Node, folders: Folders) -> None:
        """Visit the substitutions anywhere in a word, or in a here-document."""
        found = list(substitutions(node))
        for inner in found:
            self.visit(inner, folders)
        # One character per byte, so that positions are the grammar's.
        source = self.source[node.start_byte : node.end_byte].decode("latin-1")
        document = node.type == "heredoc_body"
        seen = [(f.start_byte, f.end_byte) for f in (*found, *arithmetic(node))]
        for opening in document_openings(source) if document else openings(source):
            at = node.start_byte + opening
            if not any(start <= at < end for start, end in seen):
                self.reader.opaque(self.raw(node))
                return

    # --- redirections -------------------------------------------------------------------------

    def _redirected(self, body: Node | None, redirects: list[Node], folders: Folders) -> After:
        """A command with redirections. The grammar gives those of the last command of a list or
        pipeline to the whole."""
        if body is not None and not redirects:
            return self.visit(body, folders)
        match body.type if body is not None else "":
            case "list" if body is not None:
                return self._list(body, redirects, folders)
            case "pipeline" if body is not None:
                return self._pipeline(body, redirects, folders)
            case "negated_command" if body is not None:
                return self._redirected(body.named_children[-1], redirects, folders)
            case "redirected_statement" if body is not None:
                more = body.children_by_field_name("redirect")
                inner = body.child_by_field_name("body")
                return self._redirected(inner, [*more, *redirects], folders)
            case _:
                return self._redirected_plain(body, redirects, folders)

    def _redirected_plain(
        self, body: Node | None, redirects: list[Node], folders: Folders
    ) -> After:
        more: list[Arg] = []
        later: list[Node] = []
        for child in redirects:
            if child.type == "heredoc_redirect":
                args, follow = self._heredoc(child, folders)
                more += args
                later += follow
            else:
                self._nested(child, folders)
                more += self._redirect(child, folders)
        after = After(folders, folders)
        if body is not None and body.type == "command":
            after = self._command(body, more, folders)
        else:
            if more:
                self.reader.opaque(self.text(redirects[0].start_byte, redirects[-1].end_byte))
            if body is not None:
                after = self.visit(body, folders)
        for part in later:
            after = After(None, both(after.any, self.visit(part, after.any).any))
        return after

    def _redirect(self, node: Node, folders: Folders) -> list[Arg]:
        """Report one redirection; returns the words of the command that the grammar took for further
        destinations."""
        operator, *rest = [c for c in node.children if c.type != "file_descriptor"]
        if node.type == "herestring_redirect":
            return [self.argument(child) for child in rest[1:]]
        if not rest:
            return []
        both_ways = rest[0].is_error and self.raw(rest[0]) == ">"  # `<>`, which the grammar lacks
        if both_ways and len(rest) > 1:
            rest = rest[1:]
        name = "<>" if both_ways else operator.type
        self.reader.redirect(name, self.argument(rest[0]), folders)
        return [self.argument(child) for child in rest[1:]]

    def _heredoc(self, node: Node, folders: Folders) -> tuple[list[Arg], list[Node]]:
        args: list[Arg] = []
        follow: list[Node] = []
        parts = {child.type: child for child in node.children}
        start, body, end = (parts.get(f"heredoc_{part}") for part in ("start", "body", "end"))
        if start is None or end is None:
            self.reader.opaque(self.raw(node))
        elif body is not None:
            self._check_heredoc(node.children[0].type, start, body, end)
            if not re.search(r"['\"\\]", self.raw(start)):
                self._nested(body, folders)
        for index, child in enumerate(node.children):
            field = node.field_name_for_child(index)
            if child.type.startswith("heredoc_") or not child.is_named:
                continue
            if child.type in ("file_redirect", "herestring_redirect"):
                self._nested(child, folders)
                args += self._redirect(child, folders)
            elif field == "argument":
                self._nested(child, folders)
                args.append(self.argument(child))
            elif child.type != "file_descriptor":
                follow.append(child)
        return args, follow

    def _check_heredoc(self, operator: str, start: Node, body: Node, end: Node) -> None:
        """The document must end where bash ends it: at the first line that is the delimiter."""
        delimiter = decode(self.raw(start), "").text
        lines = self.text(body.start_byte, end.end_byte).split("\n")
        following = self.text(end.end_byte, end.end_byte + 1)
        if operator == "<<-":
            lines = [line.lstrip("\t") for line in lines]
        if delimiter in lines[:-1] or lines[-1] != delimiter or following not in ("", "\n", ")"):
            self.reader.opaque(self.raw(start))
