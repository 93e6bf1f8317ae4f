"""R-SYS-1: what is wrong with an event, in the version that asks little and in the one that asks much."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.kinds.events import Events, EventsEvents
from podling.apiserver.kinds.kind import Kind, View
from podling.model.codec.json import from_data

TIME, ODD_NAME = "2026-01-01T00:00:10.000000Z", "system:Controller.17a"
NEW = {
    "eventTime": TIME,
    "reportingController": "acme.io/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
    "regarding": {"namespace": "ns"},
}
IN_CORE = {
    "eventTime": TIME,
    "reportingComponent": "c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "involvedObject": {"namespace": "ns"},
}


def made(kind: Kind[Any], data: dict[str, Any], name: str = "e", namespace: str = "ns") -> Any:
    """As it is stored."""
    obj = from_data({**data, "metadata": {"name": name, "namespace": namespace}}, kind.resource.type)
    return kind.to_stored(obj) if isinstance(kind, View) else obj


def faults(kind: Kind[Any], obj: Any) -> list[str]:
    rules = kind.stored if isinstance(kind, View) else kind
    return [f"{cause.field}: {cause.message}" for cause in rules.validate_create(obj)]


NOT_ITS_NAMESPACE = "does not match event.namespace"
CORE: list[tuple[dict[str, Any], str, list[str]]] = [
    ({"involvedObject": {"namespace": "ns"}}, "ns", []),
    ({}, "default", []),
    ({}, "ns", [f'involvedObject.namespace: Invalid value: "": {NOT_ITS_NAMESPACE}']),
    (
        {"involvedObject": {"namespace": "b"}},
        "a",
        [f'involvedObject.namespace: Invalid value: "b": {NOT_ITS_NAMESPACE}'],
    ),
    (IN_CORE, "ns", []),
    ({**IN_CORE, "involvedObject": {}}, "kube-system", []),
    (
        {**IN_CORE, "involvedObject": {}},
        "ns",
        [f'involvedObject.namespace: Invalid value: "": {NOT_ITS_NAMESPACE}'],
    ),
    ({**IN_CORE, "reportingInstance": ""}, "ns", ["reportingInstance: Required value"]),
    (
        {**IN_CORE, "reportingInstance": "i" * 129},
        "ns",
        ['reportingInstance: Invalid value: "": can have at most 128 characters'],
    ),
    ({**IN_CORE, "action": ""}, "ns", ["action: Required value"]),
    ({**IN_CORE, "reason": "r" * 129}, "ns", ['reason: Invalid value: "": can have at most 128 characters']),
    (
        {**IN_CORE, "message": "m" * 1025},
        "ns",
        ['message: Invalid value: "": can have at most 1024 characters'],
    ),
    ({**IN_CORE, "type": "Odd", "series": {"count": 0}}, "ns", []),
]


@pytest.mark.parametrize(("data", "namespace", "expected"), CORE)
def test_of_the_older_version(data: dict[str, Any], namespace: str, expected: list[str]) -> None:
    assert faults(Events(), made(Events(), data, namespace=namespace)) == expected


def test_who_reports_has_a_name_of_each_version() -> None:
    (missing, unnamed, shapeless) = faults(Events(), made(Events(), {**IN_CORE, "reportingComponent": ""}))
    assert missing == "reportingComponent: Required value"
    assert unnamed == 'reportingComponent: Invalid value: "": name part must be non-empty'
    assert shapeless.startswith('reportingComponent: Invalid value: "": name part must consist of')
    newer = faults(EventsEvents(), made(EventsEvents(), {**NEW, "reportingController": ""}))
    assert newer[0] == "reportingController: Required value"


def test_an_event_of_the_older_version_may_be_named_after_anything() -> None:
    event = {"involvedObject": {"namespace": "ns"}}
    assert faults(Events(), made(Events(), event, ODD_NAME)) == []
    (fault,) = faults(EventsEvents(), made(EventsEvents(), NEW, ODD_NAME))
    assert fault.startswith(f'metadata.name: Invalid value: "{ODD_NAME}": a lowercase RFC 1123 subdomain')


SERIES = {"count": 2, "lastObservedTime": TIME}
NEWER: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"series": SERIES}, []),
    ({"eventTime": None}, ["eventTime: Required value"]),
    ({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd']),
    (
        {"series": {"count": 1}},
        ['series.count: Invalid value: "": should be at least 2', "series.lastObservedTime: Required value"],
    ),
    (
        {"deprecatedFirstTimestamp": "2026-01-01T00:00:00Z"},
        ['firstTimestamp: Invalid value: "": needs to be unset'],
    ),
    (
        {"deprecatedLastTimestamp": "2026-01-01T00:00:00Z"},
        ['lastTimestamp: Invalid value: "": needs to be unset'],
    ),
    ({"deprecatedCount": 1}, ['count: Invalid value: "": needs to be unset']),
    ({"deprecatedSource": {"host": "h"}}, ['source: Invalid value: "": needs to be unset']),
]


@pytest.mark.parametrize(("changes", "expected"), NEWER)
def test_of_the_newer_version(changes: dict[str, Any], expected: list[str]) -> None:
    data = {key: value for key, value in {**NEW, **changes}.items() if value is not None}
    assert faults(EventsEvents(), made(EventsEvents(), data)) == expected


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"note": "n"}, "message"),
        ({"reason": "s"}, "reason"),
        ({"regarding": {"namespace": "ns", "name": "x"}}, "involvedObject"),
        ({"eventTime": "2026-01-01T00:00:11.000000Z"}, "eventTime"),
        ({"deprecatedCount": 2}, "count"),
        ({"related": {"name": "x"}}, "related"),
        ({"series": {"count": 0, "lastObservedTime": TIME}}, "series.count"),
    ],
)
def test_a_newer_event_goes_on_as_a_series_only(changes: dict[str, Any], field: str) -> None:
    kind = EventsEvents()
    causes = kind.stored.validate_update(made(kind, {**NEW, **changes}), made(kind, NEW))
    assert [cause.field for cause in causes] == [field]
    assert kind.stored.validate_update(made(kind, {**NEW, "series": SERIES}), made(kind, NEW)) == []
