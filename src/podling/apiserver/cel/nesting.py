"""Expressions that are nested deeper than the library parses: they are taken apart.

The library takes 32 levels of an expression, Kubernetes 250. What is nested deeper is read here as far as it
takes to know where its parts begin and end. A part of some levels becomes a piece: a name stands for it in
the text around, the library parses both, and the tree of the piece is put where the name is. So the library
has the word on everything that is parsed.

How deep is too deep follows the two limits of `cel-go`: of each rule of its grammar as many may be entered
within each other, and of selections, indices, calls of members, binary operators and conditions as many may
stand on the way to any part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple, NoReturn

MOST = 250
LEVELS = 10
"""Of a piece: each may enter a rule twice."""
ENTERED, ON_THE_WAY = "expression recursion limit exceeded: 250", "max recursion depth exceeded"
_TOKEN = re.compile(
    r"\s+|//[^\n]*"
    r"|(?P<raw>[bB]?[rR](?:'''.*?'''|\"\"\".*?\"\"\"|'[^'\n\r]*'|\"[^\"\n\r]*\"))"
    r"|(?P<text>[bB]?(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\""
    r"|'(?:\\.|[^'\\\n\r])*'|\"(?:\\.|[^\"\\\n\r])*\"))"
    r"|(?P<number>0x[0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])",
    re.DOTALL | re.ASCII,
)
_BINARY = {
    "||": 1, "&&": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
"""How tight each binds."""
_RELATION, _CALC = 3, 4


class Token(NamedTuple):
    sort: str
    text: str
    start: int
    end: int


class Stretch(NamedTuple):
    """A part of an expression that was read: where it is, how many levels it has as the library counts them,
    how many expressions, relations and calculations are entered within each other in it, and how many parts
    that count stand on the way."""

    start: int
    end: int
    levels: int = 1
    expressions: int = 0
    relations: int = 0
    calculations: int = 0
    way: int = 0


class Piece(NamedTuple):
    """`name` stands for it in the text around."""

    name: str
    start: int
    end: int


class TooDeep(Exception):
    """In Kubernetes' words."""


class NotRead(Exception):
    """An expression is none, and why."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def pieces(text: str) -> list[Piece]:
    """The pieces of an expression; one that is within another follows it. Raises TooDeep, NotRead."""
    return _Reading(text).pieces()


def texts_of(text: str, found: Sequence[Piece]) -> Iterator[tuple[Piece, str]]:
    """The whole, under the name "", and each piece with its text: in both, names stand for the pieces within.
    Whatever is left keeps its place."""
    whole = Piece("", 0, len(text))
    open_: list[tuple[Piece, list[str]]] = [(whole, [])]
    at = 0
    for piece in (*found, Piece("", len(text), len(text))):
        while len(open_) > 1 and open_[-1][0].end <= piece.start:
            ended, parts = open_.pop()
            yield ended, "".join((*parts, text[at : ended.end]))
            at = ended.end
        open_[-1][1].append(text[at : piece.start])
        at = piece.start
        if piece.name:
            open_[-1][1].append(piece.name.ljust(piece.end - piece.start))
            open_.append((piece, []))
    yield whole, "".join(open_[0][1])


class _Reading:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at, self._depth = 0, 0
        self._found: list[Piece] = []
        taken = {token.text for token in self._tokens}
        self._names = (name for name in map("p{}".format, count()) if name not in taken)

    def pieces(self) -> list[Piece]:
        part = self._expression()
        if self._next.sort:
            self._fail()
        if part.way > MOST:
            raise TooDeep(ON_THE_WAY)
        return sorted(self._found, key=lambda piece: (piece.start, -piece.end))

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    @property
    def _is_negative(self) -> bool:
        return self._next.text == "-" and self._tokens[self._at + 1].sort == "number"

    def _take(self) -> Token:
        token = self._next
        self._at += 1
        return token

    def _took(self, text: str) -> bool:
        if self._next.sort in ("sign", "name") and self._next.text == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> int:
        """Where it ends."""
        if not self._took(text):
            self._fail()
        return self._tokens[self._at - 1].end

    def _fail(self) -> NoReturn:
        token = self._next
        raise NotRead(token.start, f"Syntax error: mismatched input '{token.text or '<EOF>'}'")

    def _cut(self, part: Stretch) -> Stretch:
        """As it stands within another: as a piece, if it has many levels."""
        if part.levels < LEVELS:
            return part
        self._found.append(Piece(next(self._names), part.start, part.end))
        return part._replace(levels=1)

    def _around(self, start: int, *parts: Stretch, way: int = 0, levels: int = 1) -> Stretch:
        """What ends where the last token did, and has these parts."""
        return Stretch(
            start,
            self._tokens[self._at - 1].end,
            levels + max((part.levels for part in parts), default=0),
            max((part.expressions for part in parts), default=0),
            max((part.relations for part in parts), default=0),
            max((part.calculations for part in parts), default=0),
            way + max((part.way for part in parts), default=0),
        )

    def _expression(self) -> Stretch:
        self._depth += 1
        if self._depth > MOST:
            raise TooDeep(ENTERED)
        part = self._binary(1)
        if self._took("?"):
            chosen = self._cut(self._binary(1))
            self._expect(":")
            other = self._cut(self._expression())
            part = self._around(part.start, self._cut(part), chosen, other, way=1)
        self._depth -= 1
        part = part._replace(expressions=part.expressions + 1)
        if max(part.expressions, part.relations, part.calculations) > MOST:
            raise TooDeep(ENTERED)
        return part

    def _binary(self, tightness: int) -> Stretch:
        """Operators that bind as tightly, or tighter. Operands of `&&` and `||` are no levels of each
        other."""
        if tightness > max(_BINARY.values()):
            start, signs = self._next.start, 0
            while self._next.sort == "sign" and self._next.text in "!-":
                if not signs and self._is_negative:
                    break  # It is a part of the number, which may have members.
                self._at, signs = self._at + 1, signs + 1
            part = self._member()
            return self._around(start, self._cut(part)) if signs else part
        operands = [self._binary(tightness + 1)]
        start = operands[0].start
        while self._next.sort in ("sign", "name") and _BINARY.get(self._next.text) == tightness:
            self._at += 1
            operands.append(self._binary(tightness + 1))
            if tightness >= _RELATION:
                left, right = map(self._cut, operands)
                operands = [self._around(start, left, _entered(right, tightness), way=1)]
        if len(operands) > 1:
            return self._around(start, *map(self._cut, operands))
        return _entered(operands[0], tightness) if tightness in (_RELATION, _CALC) else operands[0]

    def _member(self) -> Stretch:
        part = self._primary()
        while True:
            if self._took("."):
                self._took("?")
                if self._take().sort != "name":
                    self._at -= 1
                    self._fail()
                base = self._cut(part)
                inner = self._listed(")") if self._took("(") else []
                part = self._around(part.start, base, *inner, way=1)
            elif self._took("["):
                self._took("?")
                base, index = self._cut(part), self._cut(self._expression())
                self._expect("]")
                part = self._around(part.start, base, index, way=1)
            elif self._next.text == "{" and self._tokens[self._at - 1].sort == "name":
                self._at += 1
                part = self._around(part.start, *self._fields())
            else:
                return part

    def _primary(self) -> Stretch:
        start = self._next.start
        if self._took("("):
            part = self._cut(self._expression())
            self._expect(")")
            return self._around(start, part)
        if self._took("["):
            return self._around(start, *self._listed("]"))
        if self._took("{"):
            return self._around(start, *self._fields())
        self._took("-" if self._is_negative else ".")
        token = self._take()
        if token.sort not in ("name", "raw", "text", "number"):
            self._at -= 1
            self._fail()
        if token.sort == "name" and self._took("("):
            return self._around(start, *self._listed(")", whole=token.text == "has"))
        return self._around(start)

    def _listed(self, closing: str, *, whole: bool = False) -> list[Stretch]:
        """Expressions between commas. `whole`: none becomes a piece, since a macro looks at what it is."""
        found: list[Stretch] = []
        while not self._took(closing):
            self._took("?")
            part = self._expression()
            found.append(part if whole else self._cut(part))
            if not self._took(","):
                self._expect(closing)
                break
        return found

    def _fields(self) -> list[Stretch]:
        found: list[Stretch] = []
        while not self._took("}"):
            self._took("?")
            found.append(self._cut(self._expression()))
            self._expect(":")
            found.append(self._cut(self._expression()))
            if not self._took(","):
                self._expect("}")
                break
        return found


def _entered(part: Stretch, tightness: int) -> Stretch:
    """The rule of a relation, or of a calculation."""
    if tightness == _RELATION:
        return part._replace(relations=part.relations + 1)
    return part._replace(calculations=part.calculations + 1)


def tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotRead(at, f"Syntax error: token recognition error at: '{text[at]}'")
        if found.lastgroup:
            yield Token(found.lastgroup, found[0], at, found.end())
        at = found.end()
    yield Token("", "", at, at)
