"""Expressions that are nested deeper than the library parses mean what they say, as deep as by Kubernetes.

How deep that is was found by asking it (`tests/peer/test_expressions.py`, which asks again)."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import pytest

from nested_expressions import DEEPEST, ENDLESS
from podling.apiserver.cel import nesting, parsing
from podling.apiserver.cel.checker import Expression
from podling.apiserver.cel.compilation import Compilation
from podling.apiserver.cel.evaluation import Program
from podling.apiserver.cel.nesting import NotRead, TooDeep, pieces
from podling.apiserver.cel.room import with_room
from podling.apiserver.cel.tree import Tree, which

EVERY_FORM = (
    "[1,2].map(x, [x].exists(y, y==1 && x==2) ? {1:[2]} : {2:[3]}).size() == 3",
    "a.b[c.d].e(f, g.h(i))==-(-(1)) && !!(x in [1,2,[3]])",
    "x.?y[?z.?w].orValue([{?'a':b.?c, 'd':e}])",
    "has(a.b.c.d.e) ? '''x(((''' + r'\\d(' : \"\\\"(\" + br'\\['",
    "[[1]].transformMap(k, v, v.size() > k, [v,[k]])",
    "a||b||c&&d||e&&(f||g||h&&i&&j)",
    "1+2*3-4*5/(6-7)%8 < 9 == true",
    "cel == Object{a: [Object.b{c: [1]}]}",
    "-2.0.f(1)[2] - -3 + 0x1F.g() == 1e3",
    "'\u00fc' + ('\u00fc' + ('\u00fc' + (a+['\u00fc'][0])))",
    "a\n + (b // ((\n + (c + [d]))",
    "p0 + [p1 + (p2.p3)]",
)


@pytest.mark.parametrize("what", DEEPEST)
def test_how_deep_an_expression_may_be(what: str) -> None:
    made, deepest, words = DEEPEST[what]
    compiled = Compilation().fault(Expression(made(deepest), returns=("bool", "dyn")))
    assert compiled == ""
    assert Program(made(deepest)).evaluated({}).value is True
    refused = Compilation().fault(Expression(made(deepest + 1)))
    assert refused.startswith(f"compilation failed: ERROR: <input>:-1:0: {words}")
    assert sys.getrecursionlimit() < 2_000


@pytest.mark.parametrize("what", ENDLESS)
def test_what_is_no_nesting(what: str) -> None:
    assert Program(ENDLESS[what]).evaluated({}).value is True


def shape(tree: Tree, node: Any) -> Any:
    """Everything about a part but its number."""
    what = which(node)
    part = getattr(node, what)
    own: list[Any] = [what, tree.position(node.id)]
    for field, value in part.ListFields():
        if field.name == "entries":
            own += [
                (tree.position(one.id), one.field_key, one.optional, shape(tree, one.value))
                + ((shape(tree, one.map_key),) if one.HasField("map_key") else ())
                for one in value
            ]
        elif field.name in ("args", "elements"):
            own += [shape(tree, one) for one in value]
        elif field.name == "optional_indices":
            own.append(list(value))
        elif hasattr(value, "ListFields"):
            own.append(shape(tree, value))
        else:
            own.append(value)
    return own


@pytest.mark.parametrize("text", EVERY_FORM)
def test_the_tree_is_that_of_the_library(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = parsing.parsed(text)
    monkeypatch.setattr(nesting, "LEVELS", 2)
    assert len(pieces(text)) > 1
    joined = parsing.by_pieces(text, False)
    assert shape(joined, joined.root) == shape(whole, whole.root)
    numbers = [part.id for part in joined.parts()]
    assert len(numbers) == len(set(numbers)) or len({part.id for part in whole.parts()}) < len(numbers)


@pytest.mark.parametrize(
    ("inner", "offset", "words"),
    [
        ("99999999999999999999", 60, "invalid int literal"),
        ("package", 60, "reserved identifier: package"),
        ("[1].all(1, true)", 68, "argument must be a simple name"),
        ("has(a)", 64, "invalid argument to has() macro"),
        ("1 1", 62, "Syntax error: extraneous input '1' expecting ')'"),
    ],
)
def test_what_is_wrong_deep_inside_is_told_where_it_is(inner: str, offset: int, words: str) -> None:
    fault = Compilation().fault(Expression("(" * 60 + inner + ")" * 60))
    assert fault.startswith(f"compilation failed: ERROR: <input>:1:{offset + 1}: {words}")


@pytest.mark.parametrize(
    "text", ["(", "(((a)", "a b", "'", "{1:2", "f(", "a ? b", "a.", "#", "[1", "[,,]", "a[", "1 +", "-", "."]
)
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(NotRead):
        pieces(text)


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "[" * 50_000 + "1", "a." * 40_000 + "a", "-(" * 40_000, "a?" * 40_000]
)
def test_it_ends_whatever_is_sent(text: str) -> None:
    with pytest.raises((TooDeep, NotRead)):
        with_room(partial(pieces, text))
