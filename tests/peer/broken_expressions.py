"""Expressions of CEL that are none, made by chance: a right one that lost, got or changed some of its parts.
Some are nested deep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from peer.made_expressions import made_expressions

LONGEST = 160
PARTS = re.compile(r"'[^']*'|\w+|[<>=!]=|&&|\|\||\s+|.", re.DOTALL)
STRAY = (
    *("(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "-", "!", "+", "*", "%", "/", "==", "<", "&&", "||"),
    *("in", "true", "null", "1", "1u", "1.5", "0x", ".5", "a", "has", "'a'", "b'a'", "r'a'", "'''", '"', "'"),
    *("`", "`a`", "`a-b`", "$", "#", "@", "&", "|", "=", "\\", "ü", "語", "🙂", "\n", "\t", "//", ".?", "[?"),
    *("a.", "a{", "a{b:", "f(", "package", "a.b{c: 1}", "{?a: 1}", "[?a]", "0xg", "1e", "'\\q'", "'a\n'"),
)
NESTED = (
    ("(", ")"),
    ("[", "]"),
    ("{1:", "}"),
    ("f(", ")"),
    ("a[", "]"),
    ("-(", ")"),
    ("a{b:", "}"),
    ("1+(", ")"),
)


def broken_expressions(seed: int, count: int) -> Iterator[str]:
    random = Random(seed)
    right = (text for text in made_expressions(seed, 10 * count) if len(text) <= LONGEST)
    for text in right:
        if not count:
            return
        count -= 1
        parts = PARTS.findall(text)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3))):
            _break(parts, random)
        broken = "".join(parts)
        if random.random() < 0.15:
            opening, closing = random.choice(NESTED)
            many = random.choice((5, 25, 29, 30, 31, 32, 33, 40, 120))
            broken = f"{opening * many}{broken}{closing * (many - random.choice((0, 0, 0, 1, 2)))}"
        yield broken


def _break(parts: list[str], random: Random) -> None:
    at = random.randrange(len(parts)) if parts else 0
    way = random.choice(("leave", "leave", "leave", "put", "put", "change", "change", "twice", "swap", "end"))
    if way == "put" or not parts:
        parts.insert(at, random.choice(STRAY))
    elif way == "leave":
        del parts[at]
    elif way == "change":
        parts[at] = random.choice(STRAY)
    elif way == "twice":
        parts.insert(at, parts[at])
    elif way == "swap":
        other = random.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]
    else:
        del parts[at:]
