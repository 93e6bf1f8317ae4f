"""RFC 6902, most of it by the examples of its appendix A."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.patch.json_patch import json_patch
from podling.model.errors import StatusError


def op(name: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **rest}


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"foo": "bar"}, [op("add", "/baz", value="qux")], {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, [op("add", "/foo/1", value="qux")], {"foo": ["bar", "qux", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [op("remove", "/baz")], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [op("remove", "/foo/1")], {"foo": ["bar", "baz"]}),
        ({"baz": "qux"}, [op("replace", "/baz", value="boo")], {"baz": "boo"}),
        ({"foo": "bar"}, [op("replace", "/nope", value=1)], {"foo": "bar", "nope": 1}),
        ({"foo": "bar"}, [op("copy", "/a", **{"from": "/nope"})], {"foo": "bar", "a": None}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [op("move", "/qux/thud", **{"from": "/foo/waldo"})],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        ({"foo": [1, 2, 3, 4]}, [op("move", "/foo/3", **{"from": "/foo/1"})], {"foo": [1, 3, 4, 2]}),
        ({"baz": "qux", "foo": ["a", 2]}, [op("test", "/foo/1", value=2)], {"baz": "qux", "foo": ["a", 2]}),
        ({"foo": ["bar"]}, [op("add", "/foo/-", value=["abc"])], {"foo": ["bar", ["abc"]]}),
        ({"/": 9, "~1": 10}, [op("test", "/~01", value=10)], {"/": 9, "~1": 10}),
        ({"a~b/c": 1}, [op("replace", "/a~0b~1c", value=2)], {"a~b/c": 2}),
        ({"a": 1}, [op("copy", "/b", **{"from": "/a"})], {"a": 1, "b": 1}),
        ({"a": 1}, [op("replace", "", value={"b": 2})], {"b": 2}),
        ({"a": 1}, [op("test", "/missing", value=None)], {"a": 1}),
        ({"a": {"x": 1.0}}, [op("test", "/a", value={"x": 1})], {"a": {"x": 1.0}}),
        ({"a": None}, [op("add", "/a", value=False)], {"a": False}),
        ({"a": 1}, [op("add", "/a")], {"a": None}),
    ],
)
def test_applies(document: Any, operations: list[Any], expected: Any) -> None:
    assert json_patch(document, operations) == expected


@pytest.mark.parametrize(
    ("document", "operations", "code"),
    [
        ({}, {"op": "add"}, 400),
        ({}, ["add"], 400),
        ({"baz": "qux"}, [op("test", "/baz", value="bar")], 422),
        ({"a": 1}, [op("test", "/a", value=True)], 422),
        ({"a": 1}, [op("test", "/missing/b", value=None)], 422),
        ({"a": [1]}, [op("test", "/a/9", value=None)], 422),
        ({"foo": "bar"}, [op("add", "/baz/bat", value="qux")], 422),
        ({"foo": "bar"}, [op("remove", "/nope")], 422),
        ({"foo": "bar"}, [op("remove", "")], 422),
        ({"foo": "bar"}, [op("replace", "/nope/a", value=1)], 422),
        ({"foo": []}, [op("add", "/foo/1", value=1)], 422),
        ({"foo": [1]}, [op("add", "/foo/01", value=1)], 422),
        ({"foo": [1]}, [op("remove", "/foo/-1")], 422),
        ({"foo": {"a": 1}}, [op("move", "/foo/a/b", **{"from": "/foo"})], 422),
        ({"foo": 1}, [op("frobnicate", "/foo")], 422),
        ({"foo": 1}, [op("add", "foo", value=1)], 422),
        ({"foo": 1}, [op("replace", "/foo/bar", value=1)], 422),
        ({"foo": 1}, [op("test", "/foo", value=1)] * 10_001, 413),
        ({"a": "x" * 1000}, [op("copy", "/a/-", **{"from": ""})], 422),
    ],
)
def test_refuses(document: Any, operations: Any, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        json_patch(document, operations)
    assert refused.value.code == code


def test_doubling_copies_end_before_they_fill_memory() -> None:
    operations = [op("copy", "/a/-", **{"from": "/a"})] * 200
    with pytest.raises(StatusError) as refused:
        json_patch({"a": ["x" * 1000]}, operations)
    assert refused.value.code == 422


def test_a_refused_patch_changes_nothing() -> None:
    document = {"list": [{"a": 1}]}
    with pytest.raises(StatusError):
        json_patch(document, [op("replace", "/list/0/a", value=2), op("remove", "/list/7")])
    assert document == {"list": [{"a": 1}]}


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0"]), inner, max_size=3)
    ),
    max_leaves=6,
)
pointers = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "~0", ""]), max_size=3).map(
    lambda tokens: "".join(f"/{token}" for token in tokens)
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "test", "copy", "move"]), "path": pointers},
    optional={"value": values, "from": pointers},
)


@given(values, st.lists(operations, max_size=4))
def test_only_status_errors_escape_and_the_document_stays(document: Any, patch: list[Any]) -> None:
    before = repr(document)
    try:
        json_patch(document, patch)
    except StatusError as refused:
        assert refused.code in (400, 413, 422)
    assert repr(document) == before
