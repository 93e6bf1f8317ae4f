"""R-SYS-1: sets of fields are sets, whatever tree they are written as."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.apply.managed_fields import (
    FieldsError,
    difference,
    distinct,
    encode,
    fields_of,
    intersection,
    of_projection,
    parse,
    paths,
    shown,
    union,
    union_all,
    with_projection,
)
from podling.model.types.meta import ManagedFieldsEntry

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
        *(b"[]", b"5", b"\xff", b'{"f:a":5}', b'{"a":{}}', b'{"k:[]":{}}', b'{"k:{":{}}', b'{"q:1":{}}'),
        *(b'{"f":{}}', b'{"f:a":' * 100 + b"{}" + b"}" * 100, b'{"f:a":' * 5000),
    ],
)
def test_what_is_no_set(data: bytes) -> None:
    with pytest.raises(FieldsError):
        parse(data)


@pytest.mark.parametrize("data", [b"", b"null", b"{}", b'{".":{}}'])
def test_an_empty_set(data: bytes) -> None:
    assert parse(data) == {}


def test_what_is_null_is_empty() -> None:
    assert parse(b'{"f:a":null,"f:b":{".":{},"f:":null}}') == {"f:a": {}, "f:b": {".": {}, "f:": {}}}


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


NUMBER: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def entries(version: str, *sets: bytes) -> st.SearchStrategy[list[ManagedFieldsEntry]]:
    return st.lists(
        st.builds(
            ManagedFieldsEntry,
            manager=st.sampled_from("abc"),
            operation=st.sampled_from(["Apply", "Update"]),
            api_version=st.just(version),
            time=st.sampled_from(["", "2026-01-02T03:04:05Z"]),
            fields_type=st.just("FieldsV1"),
            fields_v1=st.sampled_from(sets).map(msgspec.Raw),
            subresource=st.sampled_from(["", "scale"]),
        ),
        max_size=5,
    )


OF_OBJECTS = entries(
    "apps/v1", b'{"f:spec":{"f:replicas":{}}}', b'{"f:spec":{"f:replicas":{},"f:a":{}}}', b'{"f:b":{}}'
)
OF_SCALES = entries("autoscaling/v1", b'{"f:spec":{"f:replicas":{}}}', b'{"f:metadata":{}}')


def managers(found: Iterable[ManagedFieldsEntry]) -> set[tuple[str, str, str]]:
    """Who manages the number."""
    having = (one for one in found if intersection(fields_of(one), NUMBER))
    return {(one.manager, one.operation, one.subresource) for one in having}


@given(OF_OBJECTS, OF_SCALES)
def test_those_of_a_scale_manage_the_number_of_the_object_and_nothing_else_of_it(
    before: list[ManagedFieldsEntry], projected: list[ManagedFieldsEntry]
) -> None:
    after = with_projection(before, projected, NUMBER, "apps/v1")
    assert managers(after) == managers(projected)
    others = (difference(fields_of(one), NUMBER) for one in distinct(before))
    assert union_all(difference(fields_of(one), NUMBER) for one in after) == union_all(others)
    assert {one.api_version for one in after} <= {"apps/v1"}


@given(OF_OBJECTS)
def test_who_manages_the_number_of_an_object_manages_that_of_its_scale(
    before: list[ManagedFieldsEntry],
) -> None:
    shown = of_projection(before, NUMBER, "apps/v1", "autoscaling/v1")
    assert managers(shown) == managers(distinct(before))
    assert managers(with_projection(before, shown, NUMBER, "apps/v1")) == managers(shown)
