"""What is encoded in pieces has the bytes of what is encoded at once."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from podling.model.codec import json, pieces
from podling.model.codec.pieces import SHORT, in_order
from podling.model.types.core import ConfigMap
from podling.model.types.meta import ManagedFieldsEntry, ObjectMeta


def shuffled(count: int) -> list[str]:
    keys = [f"k{number}é" for number in range(count)]
    random.Random(1).shuffle(keys)
    return keys


MANY = SHORT * 2 + 1


@pytest.mark.parametrize("count", [0, 1, SHORT, SHORT + 1, MANY])
def test_the_bytes_are_the_same(count: int) -> None:
    keys = shuffled(count)
    entry = ManagedFieldsEntry(
        manager="m", fields_v1=msgspec.Raw(json.encode({"f:data": {key: {} for key in keys}}))
    )
    values: list[Any] = [
        keys,
        {key: key for key in keys},
        {"a": {"b": [{key: "1"} for key in keys]}, "c": {key: {} for key in keys}},
        [[{key: None} for key in keys], []],
        ConfigMap(
            metadata=ObjectMeta(name="a", finalizers=keys, managed_fields=[entry]),
            data=dict.fromkeys(keys, "v"),
        ),
    ]
    for value in values:
        whole = json.encode(value)
        assert pieces.encode(value, json.encode) == whole
        assert json.encode(value) == whole, "it was not changed"


def test_no_call_of_the_encoder_has_many_items() -> None:
    """One call keeps Python's lock to its end."""
    most = 0

    def watched(value: Any) -> bytes:
        nonlocal most
        most = max(most, longest(value))
        return json.encode(value)

    def longest(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return max((len(inner), *map(longest, inner)), default=0) if inner else 0

    pieces.encode({"a": {key: [{}] for key in shuffled(MANY)}, "b": [shuffled(MANY)]}, watched)
    assert most == SHORT


@pytest.mark.parametrize("count", [0, 1, SHORT, MANY, 10_000])
def test_keys_are_sorted_as_at_once(count: int) -> None:
    keys = shuffled(count)
    assert in_order(keys) == sorted(keys)
