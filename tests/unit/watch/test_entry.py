"""An object in the cache: the stored bytes, with the resourceVersion put in where it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podling.watch.entry import Decoder, Entry, items, splice

STORED = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"neato"},"spec":{"metadata":{}}}'


def _entry(value: bytes = STORED, decoder: Decoder | None = None, revision: int = 7) -> Entry:
    return Entry("/registry/pods/default/neato", revision, value, decoder or Decoder(json.loads))


def test_the_resource_version_comes_first_in_the_metadata() -> None:
    assert _entry().data == (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"neato"},"spec":{"metadata":{}}}'
    )
    assert splice(STORED, 7) == _entry().data


def test_an_item_of_a_list_has_neither_kind_nor_version() -> None:
    item = b'{"metadata":{"resourceVersion":"7","name":"neato"},"spec":{"metadata":{}}}'
    assert b"".join(items([_entry()])) == item
    assert b"".join(items([_entry(), _entry()])) == item + b"," + item
    assert items([]) == []


def test_a_deleted_object_is_shown_at_the_revision_of_its_deletion() -> None:
    assert json.loads(_entry().at(9))["metadata"] == {"resourceVersion": "9", "name": "neato"}


@pytest.mark.parametrize(
    "made",
    [lambda entry: entry.data, lambda entry: b"".join(entry.item()), lambda entry: splice(entry.value, 7)],
)
def test_empty_metadata_stays_valid_json(made: Any) -> None:
    entry = _entry(b'{"kind":"Pod","apiVersion":"v1","metadata":{},"spec":{}}')
    assert json.loads(made(entry))["metadata"] == {"resourceVersion": "7"}


def test_bytes_that_are_no_object_are_refused() -> None:
    with pytest.raises(ValueError, match="not found"):
        _entry(b"{}")


def test_the_stored_bytes_are_kept_as_they_are() -> None:
    assert _entry().value is STORED


def test_an_object_is_decoded_once_and_only_when_asked_for() -> None:
    decoded: list[bytes] = []

    def decode(data: bytes) -> bytes:
        decoded.append(data)
        return data

    entry = _entry(decoder=Decoder(decode))
    assert decoded == []
    assert entry.object is entry.object
    assert decoded == [entry.data]


def test_only_recent_objects_stay_decoded() -> None:
    decoded: list[str] = []

    def decode(data: bytes) -> bytes:
        decoded.append(json.loads(data)["metadata"]["resourceVersion"])
        return data

    decoder = Decoder(decode, keep=2)
    first, second, third = (_entry(decoder=decoder, revision=n) for n in (1, 2, 3))
    for entry in (first, second, first, third, third, second, first):
        assert entry.object
    assert decoded == ["1", "2", "3", "1"]


def test_an_object_that_is_known_is_not_decoded() -> None:
    def never(data: bytes) -> None:
        raise AssertionError("decoded")

    entry = _entry(decoder=Decoder(never))
    entry.know_object("neato")
    assert entry.object == "neato"


def test_an_object_that_is_known_is_kept_no_longer_than_one_decoded() -> None:
    decoder = Decoder(json.loads, keep=2)
    first, second, third = entries = [_entry(decoder=decoder, revision=revision) for revision in (1, 2, 3)]
    for entry in entries:
        entry.know_object("known")
        entry.know_object("again")
    assert (third.object, second.object) == ("known", "known")
    assert first.object == json.loads(first.data)
