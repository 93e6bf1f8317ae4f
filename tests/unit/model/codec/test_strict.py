"""Field validation: unknown and duplicate fields, with their paths, in order."""

from __future__ import annotations

import json as stdlib_json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.codec.fields import shape_of
from podling.model.codec.strict import Members, field_faults, strict_message, walk
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap
from podling.model.types.pod import Pod

FAULTS = [
    ('{"kind":"Pod","spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":1}}}]}}', []),
    ('{"metadata":{"creationTimestamp":null}}', []),
    ('{"foo":1}', ['unknown field "foo"']),
    ('{"spec":{"foo":{"bar":1}}}', ['unknown field "spec.foo"']),
    (
        '{"spec":{"containers":[{"name":"a"},{"nmae":"b"}]}}',
        ['unknown field "spec.containers[1].nmae"'],
    ),
    ('{"spec":{"nodeName":"a","nodeName":"b"}}', ['duplicate field "spec.nodeName"']),
    ('{"spec":{"nodeName":"a","nodeName":"b","nodeName":"c"}}', ['duplicate field "spec.nodeName"']),
    ('{"metadata":{"labels":{"a":"1","a":"2"}}}', ['duplicate field "metadata.labels.a"']),
    ('{"metadata": {"labels" :\n {"a" : "1", "\\u0061":"2"}}}', ['duplicate field "metadata.labels.a"']),
    (
        '{"metadata":{"annotations":{"a":"\\u0022:","a":"\\":"}}}',
        ['duplicate field "metadata.annotations.a"'],
    ),
    (
        '{"Kind":"Pod","spec":{"x":1,"hostPID":true,"hostPID":false}}',
        ['unknown field "Kind"', 'unknown field "spec.x"', 'duplicate field "spec.hostPID"'],
    ),
]


@pytest.mark.parametrize(("text", "faults"), FAULTS)
def test_faults(text: str, faults: list[str]) -> None:
    assert field_faults(text.encode(), Pod) == faults


def test_the_message_of_a_strict_refusal() -> None:
    assert strict_message(['unknown field "a"', 'duplicate field "b"']) == (
        'strict decoding error: unknown field "a", duplicate field "b"'
    )


def test_no_more_than_a_hundred_are_told() -> None:
    text = stdlib_json.dumps({f"x{n}": 1 for n in range(150)})
    assert len(field_faults(text.encode(), Pod)) == 100


def test_what_is_not_json_is_a_bad_request() -> None:
    for data in (b"{", b'{"x":"\xff"}', b'{"x":' * 100_000):
        with pytest.raises(StatusError):
            field_faults(data, Pod)


names = st.sampled_from(["data", "kind", "metadata", "labels", "a", "foo"])
values = st.recursive(
    st.sampled_from(['"x"', '"\\":"', '"\\u0022:"', '"\\u003A"', "1", "null"]),
    lambda inner: st.lists(st.tuples(names, inner), max_size=4).map(
        lambda members: "{" + ",".join(f'"{name}":{value}' for name, value in members) + "}"
    ),
    max_leaves=8,
)


@given(values)
def test_the_fast_way_agrees_with_the_walk(text: str) -> None:
    """Nothing that the walk would find is missed by the checks that decide whether to walk."""
    document = f'{{"metadata":{text},"data":{text}}}'.encode()
    walked = stdlib_json.loads(document, object_pairs_hook=Members)
    expected = list(dict.fromkeys(walk(walked, shape_of(ConfigMap), ())))
    assert field_faults(document, ConfigMap) == expected
