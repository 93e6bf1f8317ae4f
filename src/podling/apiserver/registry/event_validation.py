"""What is wrong with an event.

Of the older version little is asked; whoever writes by events.k8s.io/v1 makes a new-style event, which only
goes on as a series. Paths are of the older version throughout, as they are in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry import metadata
from podling.apiserver.registry.field import IMMUTABLE, all_invalid, invalid, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.event import Event, EventSource

LONGEST, LONGEST_MESSAGE = 128, 1024
FEWEST_OF_SERIES = 2
OF_THE_CLUSTER = ("default", "kube-system")
"""Namespaces that events about objects without one are in."""
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
_OLDER = (
    ("first_timestamp", "firstTimestamp", None),
    ("last_timestamp", "lastTimestamp", None),
    ("count", "count", 0),
    ("source", "source", EventSource()),
)


def validate_event(event: Event, *, reporter: str) -> Iterator[Cause]:
    """`reporter` is what this version calls the field of who reports."""
    # An event may be named after any object, whose name need not be one of the DNS.
    yield from metadata.validate(event.metadata, name_rule=names.path_segment)
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
        yield from _validate_text(value, path)
    if len(event.message.encode()) > LONGEST_MESSAGE:
        yield invalid("message", "", f"can have at most {LONGEST_MESSAGE} characters")


def validate_new_event(event: Event) -> Iterator[Cause]:
    yield from all_invalid("metadata.name", event.metadata.name, names.dns1123_subdomain(event.metadata.name))
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
            yield invalid(path, value, IMMUTABLE)


def _validate_text(value: str, path: str) -> Iterator[Cause]:
    if not value:
        yield required(path)
    if len(value.encode()) > LONGEST:
        yield invalid(path, "", f"can have at most {LONGEST} characters")


def _validate_series(event: Event) -> Iterator[Cause]:
    if event.series is None:
        return
    if event.series.count < FEWEST_OF_SERIES:
        yield invalid("series.count", "", f"should be at least {FEWEST_OF_SERIES}")
    if not event.series.last_observed_time:
        yield required("series.lastObservedTime")
