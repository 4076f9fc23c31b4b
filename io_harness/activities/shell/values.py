"""Variables with which a command line computes. Arithmetic in bash runs the substitutions in the text
of a variable (`x='a[$(command)]'; ((x))`), also where that text came from a file, and goes from name
to name (`x=y`). So a name in arithmetic is understood only if the command line gives it nothing but
numbers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from .steering import steers
from .words import Arg

_FOREIGN = "$"
"""In the place of a name: text that is not in the command line, or not as it is written there."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"""(["']?)[-+]?\d*\1""")
_NUMBERS = re.compile(r"[-+]?\d+|\{\d+\.\.\d+(?:\.\.\d+)?\}")
_TEXT = re.compile(r"`|\\|\$\((?!\()|\$\{?[\d@*!]")
"""In arithmetic: a substitution, a parameter of the script, another name's value."""
_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_VALUED = {"read": "aidnNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc"}
_DECLARE = frozenset({"declare", "typeset", "local", "export", "readonly"})


@dataclass
class Values:
    """What is known of the variables of one command line, with all scripts that it holds."""

    texts: set[str] = field(default_factory=lambda: {_FOREIGN})
    """Names that may hold something else than a number."""
    computed: set[str] = field(default_factory=set)
    """Names whose values are computed with."""
    steered: bool = False
    """A variable that decides which program runs is set in another way than by an assignment."""

    @property
    def understood(self) -> bool:
        return not (self.texts & self.computed or self.steered or any(map(steers, self.computed)))

    def script(self, tree: Node) -> None:
        """Take in what the syntax of a script says."""
        for node in _nodes(tree):
            match node.type:
                case "arithmetic_expansion":
                    self._computes(_text(node))
                case "compound_statement" if _text(node).startswith("(("):
                    self._computes(_text(node))
                case "c_style_for_statement":
                    self._computes(_text(node).partition("))")[0].removeprefix("for"))
                case "variable_assignment" if node.parent and "for_st" not in node.parent.type:
                    self._assignment(node)
                case "for_statement":
                    self._loop(node)
                case "subscript":
                    index = _text(node).partition("[")[2].removesuffix("]")
                    self._computes("" if index in ("@", "*") else index)
                case "expansion":
                    self._expansion(node)
                case _:
                    pass

    def command(self, name: str, args: Sequence[Arg]) -> None:
        """Take in what a builtin does with the words after it."""
        if name == "let":
            self._computes(" ".join(arg.text for arg in args))
        elif name in _VALUED or name in ("getopts", "printf", "wait"):
            for arg in _set_by(name, args):
                self._set(arg.text)
        elif name in ("test", "[", "[["):
            self._test(name, [arg.text for arg in args])
        elif name == "unset":
            self._names(arg.text for arg in args if not re.match(r"-\w+\Z", arg.text))
        elif name in _DECLARE:
            options = "".join(arg.text for arg in args if re.match(r"[-+]\w", arg.text))
            operands = [arg.text for arg in args if not re.match(r"[-+]\w", arg.text)]
            self._names(text.partition("=")[0] for text in operands)
            if "n" in options and name != "export":
                self.computed.add(_FOREIGN)  # another name for a variable
            if "i" in options:
                self._computes(" ".join(operands))

    def _computes(self, text: str) -> None:
        self.computed.update(_NAME.findall(text))
        if _TEXT.search(text):
            self.computed.add(_FOREIGN)

    def _names(self, texts: Iterable[str]) -> None:
        """Words that name variables; a subscript is computed."""
        for text in texts:
            name, _, index = text.partition("[")
            if not _NAME.fullmatch(name.removesuffix("+")):
                self.computed.add(_FOREIGN)
            self._computes("" if index.rstrip("]+") in ("@", "*") else index)

    def _set(self, text: str) -> None:
        self._names([text])
        name = text.partition("[")[0]
        self.texts.add(name)
        self.steered = self.steered or steers(name)

    def _assignment(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is None or value.type == "arithmetic_expansion":
            return
        if value.type == "array":
            for element in value.named_children:
                if found := re.match(r"\[(.*?)\]\+?=", _text(element), re.DOTALL):
                    self._computes(found[1])
        if not _NUMBER.fullmatch(_text(value)):
            self.texts.add(re.split(r"\+?=|\[", _text(node), maxsplit=1)[0])

    def _loop(self, node: Node) -> None:
        """for, select."""
        name, *words = [c for c in node.named_children if c.type != "do_group"]
        self.steered = self.steered or steers(_text(name))
        if not words or not all(_NUMBERS.fullmatch(_text(word)) for word in words):
            self.texts.update((_text(name), "REPLY"))

    def _expansion(self, node: Node) -> None:
        text = _text(node)
        types = [child.type for child in node.children]
        if found := re.match(r"\$\{(\w+)(?:\[.*?\])?:?=", text, re.DOTALL):
            self._set(found[1])
        if ":" in types:
            self._computes(" ".join(map(_text, node.children[types.index(":") + 1 :])))
        if "!" in types and not re.search(r"\[[@*]\]\}\Z", text):
            self.computed.add(_FOREIGN)

    def _test(self, name: str, texts: Sequence[str]) -> None:
        for at, text in enumerate(texts):
            if text in ("-v", "-R"):
                self._names(texts[at + 1 : at + 2])
                self._computes(" ".join(texts[at + 1 : at + 2]))  # `$x` of `[[` comes without its $
            elif name == "[[" and text in _COMPARES:
                self._computes(" ".join((*texts[max(at - 1, 0) : at], *texts[at + 1 : at + 2])))


def _set_by(name: str, args: Sequence[Arg]) -> Iterator[Arg]:
    """The words of a builtin that name variables which it sets; rather one too many."""
    if name in ("printf", "wait"):
        letter = "v" if name == "printf" else "p"
        for at, arg in enumerate(args):
            if found := re.match(rf"-[nf]*{letter}(.*)", arg.text):
                yield from [Arg(found[1])] if found[1] else args[at + 1 : at + 2]
        return
    yield from map(Arg, ("OPTARG",) if name == "getopts" else ("REPLY", "MAPFILE"))
    rest = list(args[1:] if name == "getopts" else args)
    valued = _VALUED.get(name, "")
    while rest:
        arg = rest.pop(0)
        found = re.match(rf"-\w*?([{valued}])(.*)", arg.text) if valued else None
        if found is None:
            if not re.match(r"-\w+\Z|--\Z", arg.text):
                yield arg
        elif found[1] == "a":
            yield from [Arg(found[2])] if found[2] else rest[:1]
        elif not found[2]:
            del rest[:1]


def _nodes(tree: Node) -> Iterator[Node]:
    """A tree's nodes, without recursion: a script may be deep."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(node.named_children)


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")
