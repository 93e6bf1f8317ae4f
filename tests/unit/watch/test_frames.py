"""The bytes of a watch, as Kubernetes sends them."""

from __future__ import annotations

import json

import pytest

from podling.watch.entry import Decoder, Entry, EventType, JsonFrames, SelectedEvent, SharedFrames

POD = Entry(
    "/registry/pods/a", 7, b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}', Decoder(json.loads)
)


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_is_a_line_with_the_object_at_its_revision(type_: EventType) -> None:
    assert JsonFrames("Pod", "v1").event(SelectedEvent(type_, POD, 9)).decode() == (
        f'{{"type":"{type_}","object":{{"kind":"Pod","apiVersion":"v1",'
        '"metadata":{"resourceVersion":"9","name":"a"}}}\n'
    )


def test_a_bookmark_is_an_object_of_the_kind_with_nothing_but_a_revision() -> None:
    assert JsonFrames("Pod", "v1").bookmark(12) == (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12"}}}\n'
    )


def test_the_bookmark_after_the_initial_events_is_annotated() -> None:
    assert JsonFrames("Lease", "coordination.k8s.io/v1").bookmark(12, initial_events_end=True) == (
        b'{"type":"BOOKMARK","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{'
        b'"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
    )


def test_a_frame_is_made_once_for_all_who_see_the_same() -> None:
    shared, frames, others = SharedFrames(), JsonFrames("Pod", "v1"), JsonFrames("Pod", "v1")
    added, modified = SelectedEvent("ADDED", POD, 9), SelectedEvent("MODIFIED", POD, 9)
    assert shared.event(frames, added) is shared.event(frames, added)
    assert b"MODIFIED" in shared.event(frames, modified)
    assert shared.event(others, added) is not shared.event(frames, added)
