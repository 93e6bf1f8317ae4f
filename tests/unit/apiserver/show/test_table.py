"""Tables and metadata-only answers, whole and as events of a watch (R-SYS-1)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podling.apiserver.kinds.config import ConfigMaps
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.show.table import (
    METADATA,
    NOTHING,
    OBJECT,
    MetadataFrames,
    TableFrames,
    Tables,
    include_object,
    partial_metadata_list,
)
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap
from podling.model.types.meta import ListMeta
from podling.watch.entry import Decoder, Entry, SelectedEvent

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
TABLES = Tables(ConfigMaps())


class Clock:
    def now(self) -> datetime:
        return NOW


def entry(revision: int = 7) -> Entry:
    data = {"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": {"a": "1"}}
    value = json.encode(json.from_data(data, ConfigMap))
    return Entry("/registry/configmaps/ns/x", revision, value, Decoder(json.decoder_of(ConfigMap).decode))


def decoded(data: bytes) -> Any:
    return msgspec.json.decode(data)


def test_a_list_as_a_table() -> None:
    metadata = ListMeta(resource_version="9", continue_="c", remaining_item_count=3)
    table = decoded(TABLES.of_list([entry()], metadata, NOW, "Metadata"))
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"] == {"resourceVersion": "9", "continue": "c", "remainingItemCount": 3}
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["columnDefinitions"][0].keys() == {"name", "type", "format", "description", "priority"}
    (row,) = table["rows"]
    assert row["cells"] == ["x", 1, "60s"]
    assert (row["object"]["kind"], row["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert row["object"]["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")]
)
def test_how_much_of_the_object_comes_with_its_row(include: str, kind: str | None) -> None:
    (row,) = decoded(TABLES.of_one(entry(), 7, NOW, include))["rows"]
    assert (row["object"] and row["object"]["kind"]) == kind


@pytest.mark.parametrize(
    ("values", "included"), [([], "Metadata"), ([""], "Metadata"), (["None"], "None"), (["Object"], "Object")]
)
def test_the_parameter(values: list[str], included: str) -> None:
    assert include_object(values) == included


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(StatusError, match='includeObject: Invalid value: "All": must be'):
        include_object(["All"])


def test_a_watch_of_tables() -> None:
    frames = TableFrames(TABLES, "Metadata", Clock())
    event = decoded(frames.event(SelectedEvent("DELETED", entry(), 8)))
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"] == {"resourceVersion": "8"}
    assert event["object"]["rows"][0]["object"]["metadata"]["resourceVersion"] == "8"
    bookmark = decoded(frames.bookmark(9))
    (row,) = bookmark["object"]["rows"]
    assert (bookmark["type"], row["object"]["metadata"]) == ("BOOKMARK", {"resourceVersion": "9"})
    assert bookmark["object"]["metadata"] == {"resourceVersion": "9"}


def test_a_watch_of_metadata() -> None:
    frames = MetadataFrames()
    event = decoded(frames.event(SelectedEvent("ADDED", entry(), 7)))
    assert event["object"]["metadata"]["name"] == "x"
    assert "data" not in event["object"]
    bookmark = decoded(frames.bookmark(9, initial_events_end=True))
    assert bookmark["object"]["metadata"] == {
        "resourceVersion": "9",
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


def test_a_list_of_metadata() -> None:
    found = decoded(partial_metadata_list([entry()], ListMeta(resource_version="9")))
    assert (found["kind"], found["metadata"]) == ("PartialObjectMetadataList", {"resourceVersion": "9"})
    assert [item["metadata"]["name"] for item in found["items"]] == ["x"]


def test_frames_end_with_a_newline() -> None:
    for frames in (TableFrames(TABLES, "None", Clock()), MetadataFrames()):
        assert frames.event(SelectedEvent("ADDED", entry(), 7)).endswith(b"}\n")
        assert frames.bookmark(1).endswith(b"}\n")


WATCHED = [kind for kind in KINDS if "watch" in kind.verbs]


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: str(kind.resource.plural))
def test_every_kind_has_a_row_for_a_bookmark(kind: Kind[Any]) -> None:
    for include in (NOTHING, METADATA, OBJECT):
        frame = decoded(TableFrames(Tables(kind), include, Clock()).bookmark(9, initial_events_end=True))
        (row,) = frame["object"]["rows"]
        # Kubernetes writes the age of an IPAddress, for which it has no column.
        assert len(row["cells"]) == len(kind.columns) + (kind.resource.plural == "ipaddresses")
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert row["object"]["kind"] == kind.resource.kind
