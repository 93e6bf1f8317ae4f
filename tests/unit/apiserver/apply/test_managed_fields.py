"""R-SYS-1: sets of fields are sets, whatever tree they are written as."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.apply.managed_fields import (
    FieldsError,
    difference,
    encode,
    intersection,
    parse,
    paths,
    shown,
    union,
    union_all,
)

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.frozensets(
    st.tuples(ELEMENTS) | st.tuples(ELEMENTS, ELEMENTS) | st.tuples(*[ELEMENTS] * 3), max_size=8
)


def tree(members: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Built path by path, as the definition says."""
    root: dict[str, Any] = {}
    for path in members:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return tidy(root)


def tidy(node: dict[str, Any]) -> dict[str, Any]:
    below = {element: tidy(child) for element, child in node.items() if element != "."}
    return {**below, ".": {}} if "." in node and below else below


@given(PATHS, PATHS)
def test_algebra(a: frozenset[Any], b: frozenset[Any]) -> None:
    assert set(paths(union(tree(a), tree(b)))) == a | b
    assert union_all((tree(a), tree(b), tree(a))) == union(tree(a), tree(b))
    assert set(paths(difference(tree(a), tree(b)))) == a - b
    assert set(paths(intersection(tree(a), tree(b)))) == a & b


@given(PATHS, PATHS)
def test_one_set_has_one_form(a: frozenset[Any], b: frozenset[Any]) -> None:
    assert union(tree(a), tree(b)) == tree(a | b)
    assert difference(tree(a), tree(b)) == tree(a - b)
    assert intersection(tree(a), tree(b)) == tree(a & b)


@given(PATHS)
def test_written_and_read(a: frozenset[Any]) -> None:
    assert parse(encode(tree(a))) == tree(a)


@given(PATHS, PATHS)
def test_arguments_stay_as_they_are(a: frozenset[Any], b: frozenset[Any]) -> None:
    ours, theirs = tree(a), tree(b)
    for operation in (union, difference, intersection):
        operation(ours, theirs)
    assert (ours, theirs) == (tree(a), tree(b))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"5", b"\xff", b'{"f:a":5}', b'{"a":{}}', b'{"k:[]":{}}', b'{"k:{":{}}', b'{"q:1":{}}'),
        *(b'{"f:":{}}', b'{"f:a":' * 100 + b"{}" + b"}" * 100, b'{"f:a":' * 5000),
    ],
)
def test_what_is_no_set(data: bytes) -> None:
    with pytest.raises(FieldsError):
        parse(data)


@given(st.binary(max_size=40))
def test_only_the_declared_error_escapes(data: bytes) -> None:
    with suppress(FieldsError):
        parse(data)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (("f:spec", "f:containers", 'k:{"name":"app"}', "f:image"), '.spec.containers[name="app"].image'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"x/y"'), '.finalizers[="x/y"]'),
    ],
)
def test_shown(path: tuple[str, ...], told: str) -> None:
    assert shown(path) == told


def test_members_of_a_node_come_before_those_below_them() -> None:
    fields = tree([("f:a", "f:deep"), ("f:b",), ("f:c",), ("f:c", "f:deep")])
    assert list(paths(fields)) == [("f:b",), ("f:c",), ("f:a", "f:deep"), ("f:c", "f:deep")]
