"""Expressions of CEL made by chance from the signatures of all functions: most are right, some are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from podling.apiserver.cel.inference import functions
from podling.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    LIST,
    MAP,
    NULL,
    PARAM,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Signature,
    Type,
    list_of,
    map_of,
    optional_of,
    struct,
    without_wrapper,
)

LONGEST = 400
ODD = 0.05
"""How often an argument is of another type than the function takes."""
ATOMS: Mapping[Type, Sequence[str]] = {
    INT: ("1", "0", "-3", "7", "size(object.data)", "int(object.data.n)", "9223372036854775807"),
    STRING: (
        *("'a'", "''", "'aaaaaaaaab'", "'2020-01-01T00:00:00Z'", "'1.2.3'", "'10.0.0.0/8'", "'10.0.0.1'"),
        *("'https://a.b/c'", "'12'", "'a=b,c=d'", "'üüüü'", "object.data.k", "object.data.n"),
        *("object.metadata.name", "request.operation", "object.data.absent"),
    ),
    BOOL: ("true", "false", "object.data.k == 'v'", "has(object.data.k)"),
    DOUBLE: ("1.5", "0.0", "-2.0"),
    UINT: ("1u", "3u"),
    BYTES: ("b'abc'", "b''", "bytes(object.data.k)"),
    Type(TIMESTAMP): ("timestamp('2020-01-01T00:00:00Z')", "timestamp('2021-03-04T05:06:07.5Z')"),
    Type(DURATION): ("duration('1h')", "duration('90s')"),
    NULL: ("null",),
    struct("kubernetes.Quantity"): ("quantity('1Gi')", "quantity('-1')"),
    struct("kubernetes.URL"): ("url('https://a.b/c')",),
    struct("kubernetes.Semver"): ("semver('1.2.3')",),
    struct("kubernetes.NamedFormat"): ("format.dns1123Label()", "format.uri()", "format.uuid()"),
    struct("net.IP"): ("ip('10.0.0.1')", "ip('2001:db8::1')"),
    struct("net.CIDR"): ("cidr('10.0.0.0/8')", "cidr('2001:db8::/32')"),
    map_of(STRING, STRING): ("object.data", "{'a': 'b'}", "{'k': object.data.k}"),
}
OPEN = (
    *(
        "dyn(1)",
        "dyn('aaaaaaaaab')",
        "dyn([1, 2])",
        "dyn({'a': 1})",
        "object.data.k",
        "object.data",
        "object",
    ),
    *("dyn(1.0)", "dyn(b'abc')", "dyn(null)", "dyn(true)", "dyn(1u)", "optional.of(1)"),
)
"""Of which it is not known what they are."""
OPERATORS = {f"_{sign}_": sign for sign in ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=")}
OPERATORS |= {"_&&_": "&&", "_||_": "||", "@in": "in"}


def made_expressions(seed: int, count: int) -> Iterator[str]:
    making = _Making(Random(seed))
    for _ in range(count):
        text = making.expression()
        while len(text) > LONGEST:
            text = making.expression()
        yield text


class _Making:
    def __init__(self, random: Random) -> None:
        self._random, self._names = random, 0
        self._variables: list[tuple[str, Type]] = []
        self._signatures = [
            (name, way)
            for name, ways in functions().items()
            if name in OPERATORS or name in ("!_", "-_", "_[_]", "_[?_]") or name.replace(".", "").isalnum()
            for way in ways
        ]
        self._returning = defaultdict[str, list[tuple[str, Signature]]](list)
        for name, way in self._signatures:
            self._returning[way.returns.kind].append((name, way))

    def expression(self) -> str:
        random = self._random
        if random.random() < 0.5:
            return self._of(self._type(1), random.randint(1, 4))
        name, way = random.choice(self._signatures)
        return self._call(name, way, {}, random.randint(1, 3))

    def _type(self, depth: int) -> Type:
        chance = self._random.random()
        if depth and chance < 0.15:
            return list_of(self._type(depth - 1))
        if depth and chance < 0.2:
            return map_of(self._random.choice([STRING, INT, BOOL, UINT]), self._type(depth - 1))
        return optional_of(self._type(0)) if chance < 0.25 else self._random.choice(list(ATOMS))

    def _of(self, type_: Type, depth: int) -> str:
        """An expression of a type, with so many calls in each other."""
        random, type_ = self._random, without_wrapper(type_)
        if random.random() < ODD:
            type_ = random.choice(list(ATOMS))
        if random.random() < 2 * ODD:
            return random.choice(OPEN)
        if type_.kind in ("dyn", "any"):
            type_ = self._type(1)
        if type_.kind == TYPE:
            return f"type({self._of(self._type(0), depth - 1)})"
        known = [name for name, of in self._variables if of == type_]
        if known and random.random() < 0.5:
            return random.choice(known)
        if depth <= 0 or random.random() < 0.25:
            return self._plain(type_, depth)
        if random.random() < 0.3:
            return self._special(type_, depth - 1)
        ways = []
        for name, way in (*self._returning[type_.kind], *random.sample(self._returning[PARAM], 2)):
            found: dict[str, Type] = {}
            if _fits(way.returns, type_, found):
                ways.append((name, way, found))
        return self._call(*random.choice(ways), depth) if ways else self._plain(type_, depth)

    def _special(self, type_: Type, depth: int) -> str:
        """What is no function, or a macro."""
        values = [self._of(type_, depth) for _ in range(2)]
        made = [
            f"({self._of(BOOL, depth)} ? {values[0]} : {values[1]})",
            f"{self._of(list_of(type_), depth)}[{self._of(INT, 0)}]",
            f"{self._of(map_of(STRING, type_), depth)}[{self._of(STRING, 0)}]",
            f"optional.of({values[0]}).orValue({values[1]})",
        ]
        if type_ == BOOL:
            made += [self._loop(macro, BOOL, depth) for macro in ("all", "exists", "exists_one")]
        if type_.kind == LIST:
            made += [self._loop("map", type_.params[0], depth), self._loop("filter", BOOL, depth, type_)]
        return self._random.choice(made)

    def _loop(self, macro: str, returns: Type, depth: int, over: Type | None = None) -> str:
        item = over.params[0] if over is not None else self._type(0)
        many = self._of(list_of(item), depth)
        self._names += 1
        name = f"{'xyz'[self._names % 3]}{self._names % 2}"
        self._variables.append((name, item))
        body = self._of(returns, depth)
        self._variables.pop()
        return f"{many}.{macro}({name}, {body})"

    def _plain(self, type_: Type, depth: int) -> str:
        if type_ in ATOMS:
            return self._random.choice(ATOMS[type_])
        if type_.kind == LIST:
            items = [self._of(type_.params[0], depth - 1) for _ in range(self._random.randint(0, 3))]
            return f"[{', '.join(items)}]"
        if type_.kind == MAP:
            key, value = type_.params
            return f"{{{self._of(key, 0)}: {self._of(value, depth - 1)}}}"
        if type_.is_optional:
            return self._random.choice(
                [f"optional.of({self._of(type_.params[0], depth - 1)})", "optional.none()"]
            )
        return "object"

    def _call(self, name: str, way: Signature, found: dict[str, Type], depth: int) -> str:
        given = [self._of(self._filled(one, found), depth - 1) for one in way.takes]
        if name in OPERATORS:
            return f"({given[0]} {OPERATORS[name]} {given[1]})"
        if name in ("!_", "-_"):
            return f"{name[0]}({given[0]})"
        if name in ("_[_]", "_[?_]"):
            return f"{given[0]}{name[1:-2]}{given[1]}]"
        return (
            f"{given[0]}.{name}({', '.join(given[1:])})" if way.is_member else f"{name}({', '.join(given)})"
        )

    def _filled(self, type_: Type, found: dict[str, Type]) -> Type:
        """With a type for each parameter."""
        if type_.kind == PARAM:
            return found.setdefault(type_.name, self._type(1))
        return Type(type_.kind, type_.name, tuple(self._filled(one, found) for one in type_.params))


def _fits(type_: Type, wanted: Type, found: dict[str, Type]) -> bool:
    if type_.kind == PARAM:
        return found.setdefault(type_.name, wanted) == wanted
    return (
        type_.kind == wanted.kind
        and type_.name == wanted.name
        and len(type_.params) == len(wanted.params)
        and all(_fits(one, other, found) for one, other in zip(type_.params, wanted.params, strict=True))
    )
