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

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple, NoReturn

from podling.apiserver.cel.tokens import Token, tokens

MOST = 250
LEVELS = 10
"""Of a piece: each may enter a rule twice."""
ENTERED, ON_THE_WAY = "expression recursion limit exceeded: 250", "max recursion depth exceeded"
_BINARY = {
    "||": 1, "&&": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
"""How tight each binds."""
_RELATION, _CALC = 3, 4
_BETWEEN = ("WHITESPACE", "COMMENT")
_PLAIN = ("IDENTIFIER", "NUM_INT", "NUM_UINT", "NUM_FLOAT", "STRING", "BYTES")


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


class NotRead(RuntimeError):
    """An expression is none."""


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
        self._tokens = [token for token in tokens(text) if token.sort not in _BETWEEN]
        self._tokens.append(Token("", "", len(text), len(text)))
        self._at, self._depth = 0, 0
        self._found: list[Piece] = []
        taken = {token.text for token in self._tokens}
        self._names = (name for name in map("p{}".format, count()) if name not in taken)

    def pieces(self) -> list[Piece]:
        part = self._expression()
        if self._next.start < self._next.end:
            self._fail()
        if part.way > MOST:
            raise TooDeep(ON_THE_WAY)
        return sorted(self._found, key=lambda piece: (piece.start, -piece.end))

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    @property
    def _is_negative(self) -> bool:
        return self._next.text == "-" and self._tokens[self._at + 1].sort in ("NUM_INT", "NUM_FLOAT")

    def _take(self) -> Token:
        token = self._next
        self._at += 1
        return token

    def _took(self, text: str) -> bool:
        if self._next.sort == "SIGN" and self._next.text == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> int:
        """Where it ends."""
        if not self._took(text):
            self._fail()
        return self._tokens[self._at - 1].end

    def _fail(self) -> NoReturn:
        raise NotRead(f"Syntax error: at {self._next.start}")

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
            while self._next.sort == "SIGN" and self._next.text in "!-":
                if not signs and self._is_negative:
                    break  # It is a part of the number, which may have members.
                self._at, signs = self._at + 1, signs + 1
            part = self._member()
            return self._around(start, self._cut(part)) if signs else part
        operands = [self._binary(tightness + 1)]
        start = operands[0].start
        while self._next.sort == "SIGN" and _BINARY.get(self._next.text) == tightness:
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
                if self._take().sort != "IDENTIFIER":
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
            elif self._next.text == "{" and self._tokens[self._at - 1].sort == "IDENTIFIER":
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
        if token.sort not in _PLAIN and token.text not in ("true", "false", "null"):
            self._at -= 1
            self._fail()
        if token.sort == "IDENTIFIER" and self._took("("):
            return self._around(start, *self._listed(")", whole=token.text == "has"))
        return self._around(start)

    def _listed(self, closing: str, *, whole: bool = False) -> list[Stretch]:
        """Expressions between commas. `whole`: none becomes a piece, since a macro looks at what it is."""
        found: list[Stretch] = []
        if closing != ")" and self._took(","):
            self._expect(closing)
            return found
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
        if self._took(","):
            self._expect("}")
            return found
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
