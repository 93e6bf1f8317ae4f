"""Events in both versions, core/v1 and events.k8s.io/v1, which show the same stored objects.

core/v1 checks little. A writer through events.k8s.io/v1 makes a new-style event, whose fields are checked and
of which an update may change only the series. Faults have the paths of core/v1 in both, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import astuple

from podling.apiserver.kinds.columns import NAME, age
from podling.apiserver.kinds.kind import Column, Kind, View
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import IMMUTABLE, all_invalid, internal, invalid, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.core import Event, EventSeries, EventsEvent, EventSource, EventsSeries

LONGEST, LONGEST_MESSAGE = 128, 1024
FEWEST_OF_SERIES = 2
OF_THE_CLUSTER = ("default", "kube-system")
"""The namespaces for events about cluster-scoped objects."""
_FROZEN = (
    ("involved_object", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("first_timestamp", "firstTimestamp"),
    ("last_timestamp", "lastTimestamp"),
    ("count", "count"),
    ("type", "type"),
    ("event_time", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reporting_component", "reportingController"),
    ("reporting_instance", "reportingInstance"),
)
_NAMES = (
    ("metadata", "metadata"),
    ("involved_object", "regarding"),
    ("reason", "reason"),
    ("message", "note"),
    ("source", "deprecated_source"),
    ("first_timestamp", "deprecated_first_timestamp"),
    ("last_timestamp", "deprecated_last_timestamp"),
    ("count", "deprecated_count"),
    ("type", "type"),
    ("event_time", "event_time"),
    ("action", "action"),
    ("related", "related"),
    ("reporting_component", "reporting_controller"),
    ("reporting_instance", "reporting_instance"),
)
"""Each field but the series, as core/v1 and as events.k8s.io/v1 name it."""
_OLDER = (
    ("first_timestamp", "firstTimestamp", None),
    ("last_timestamp", "lastTimestamp", None),
    ("count", "count", 0),
    ("source", "source", EventSource()),
)

COLUMNS = (
    Column("Last Seen", description="How long ago it happened last."),
    Column("Type", description="Normal or Warning."),
    Column("Reason", description="What happened, in one word."),
    Column("Object", description="What it happened to."),
    Column("Subobject", description="The part of the object it happened to.", priority=1),
    Column("Source", description="Who saw it.", priority=1),
    Column("Message", description="What happened."),
    Column("First Seen", description="How long ago it happened first.", priority=1),
    Column("Count", description="How often it happened.", priority=1),
    NAME._replace(priority=1),
)


def validate_event(event: Event, *, reporter: str) -> Iterator[Cause]:
    """`reporter`: what this version calls the field `reportingController`."""
    namespace, of_object = event.metadata.namespace, event.involved_object.namespace
    if not event.event_time:
        if namespace != (of_object or "default"):
            yield invalid("involvedObject.namespace", of_object, "does not match event.namespace")
        return
    if not of_object and namespace not in OF_THE_CLUSTER:
        yield invalid("involvedObject.namespace", of_object, "does not match event.namespace")
    if not event.reporting_component:
        yield required(reporter)
    faults = names.qualified_name(event.reporting_component)
    yield from all_invalid(reporter, event.reporting_component, faults)
    for path, value in (
        ("reportingInstance", event.reporting_instance),
        ("action", event.action),
        ("reason", event.reason),
    ):
        if not value:
            yield required(path)
        if len(value.encode()) > LONGEST:
            yield invalid(path, "", f"can have at most {LONGEST} characters")
    if len(event.message.encode()) > LONGEST_MESSAGE:
        yield invalid("message", "", f"can have at most {LONGEST_MESSAGE} characters")


def validate_new_event(event: Event) -> Iterator[Cause]:
    yield from metadata.validate(event.metadata)
    yield from _validate_series(event)
    if not event.event_time:
        yield required("eventTime")
    if event.type not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {event.type}")
    for attribute, path, unset in _OLDER:
        if getattr(event, attribute) != unset:
            yield invalid(path, "", "needs to be unset")


def validate_event_update(new: Event, old: Event) -> Iterator[Cause]:
    if new.series != old.series:
        yield from _validate_series(new)
    for attribute, path in _FROZEN:
        value = getattr(new, attribute)
        if value != getattr(old, attribute):
            yield invalid(path, internal(value), IMMUTABLE)


def _validate_series(event: Event) -> Iterator[Cause]:
    if event.series is None:
        return
    if event.series.count < FEWEST_OF_SERIES:
        yield invalid("series.count", "", f"should be at least {FEWEST_OF_SERIES}")
    if not event.series.last_observed_time:
        yield required("series.lastObservedTime")


class Events(Kind[Event]):
    resource = resource_of(Event)
    ttl = 3600
    judges_prefix_again = False
    cached = False
    has_dependents = False
    creates_on_update = True
    columns = COLUMNS
    selectable_fields = {
        "involvedObject.kind": lambda event: event.involved_object.kind,
        "involvedObject.namespace": lambda event: event.involved_object.namespace,
        "involvedObject.name": lambda event: event.involved_object.name,
        "involvedObject.uid": lambda event: event.involved_object.uid,
        "involvedObject.apiVersion": lambda event: event.involved_object.api_version,
        "involvedObject.resourceVersion": lambda event: event.involved_object.resource_version,
        "involvedObject.fieldPath": lambda event: event.involved_object.field_path,
        "reason": lambda event: event.reason,
        "reportingComponent": lambda event: event.reporting_component,
        "source": lambda event: event.source.component or event.reporting_component,
        "type": lambda event: event.type,
    }

    def validate(self, obj: Event) -> list[Cause]:
        # An event may be named after any object, whose name need not be one of the DNS.
        faults = list(validate_event(obj, reporter="reportingComponent"))
        return faults or metadata.validate_written(obj.metadata, standard=False)

    def row(self, obj: Event, now: datetime) -> list[Any]:
        first = obj.first_timestamp or obj.event_time
        last = obj.series.last_observed_time if obj.series else obj.last_timestamp or first
        count = obj.series.count if obj.series else obj.count or 1
        about = obj.involved_object
        target = about.kind.lower() + (f"/{about.name}" if about.name else "")
        host = obj.source.host or obj.reporting_instance
        source = (obj.source.component or obj.reporting_component) + (f", {host}" if host else "")
        return [
            age(last, now),
            obj.type,
            obj.reason,
            target,
            about.field_path,
            source,
            obj.message.strip(),
            age(first, now),
            count,
            obj.metadata.name,
        ]


class _NewEvents(Events):
    """Events that are written through events.k8s.io/v1."""

    def validate(self, obj: Event) -> list[Cause]:
        faults = metadata.validate(obj.metadata, name_rule=names.path_segment)
        return [*faults, *validate_event(obj, reporter="reportingController")]

    def validate_create(self, obj: Event) -> list[Cause]:
        return [*validate_event(obj, reporter="reportingController"), *validate_new_event(obj)]

    def validate_update(self, new: Event, old: Event) -> list[Cause]:
        return [*metadata.validate_update(new.metadata, old.metadata), *validate_event_update(new, old)]


class EventsEvents(View[EventsEvent, Event]):
    """events.k8s.io/v1, which event recorders use: stricter, and with other names for the same fields."""

    resource = resource_of(EventsEvent)
    cached = False
    has_dependents = False
    stored = _NewEvents()
    creates_on_update = True
    columns = COLUMNS
    selectable_fields = {
        "regarding.kind": lambda event: event.regarding.kind,
        "regarding.namespace": lambda event: event.regarding.namespace,
        "regarding.name": lambda event: event.regarding.name,
        "regarding.uid": lambda event: event.regarding.uid,
        "regarding.apiVersion": lambda event: event.regarding.api_version,
        "regarding.resourceVersion": lambda event: event.regarding.resource_version,
        "regarding.fieldPath": lambda event: event.regarding.field_path,
        "reason": lambda event: event.reason,
        "reportingController": lambda event: event.reporting_controller,
        "type": lambda event: event.type,
    }

    def to_stored(self, obj: EventsEvent) -> Event:
        fields = {older: getattr(obj, newer) for older, newer in _NAMES}
        return Event(**fields, series=EventSeries(*astuple(obj.series)) if obj.series else None)

    def from_stored(self, obj: Event) -> EventsEvent:
        fields = {newer: getattr(obj, older) for older, newer in _NAMES}
        return EventsEvent(**fields, series=EventsSeries(*astuple(obj.series)) if obj.series else None)
