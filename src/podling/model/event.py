"""Event in both its forms, core/v1 and events.k8s.io/v1: one stored object read under two sets of names."""

from __future__ import annotations

from typing import ClassVar

from podling.model.base import Part, always, null
from podling.model.fields import Int32, MicroTime, Time
from podling.model.meta import KubeObject
from podling.model.references import ObjectReference


class EventSource(Part):
    component: str = ""
    host: str = ""


class EventSeries(Part):
    """`last_observed_time` is a MicroTime (`2026-01-02T03:04:05.000006Z`)."""

    count: Int32 = 0
    last_observed_time: MicroTime | None = null()


class Event(KubeObject):
    """`event_time` is a MicroTime; the timestamps are whole seconds."""

    KIND: ClassVar[str] = "Event"
    API_VERSION: ClassVar[str] = "v1"

    involved_object: ObjectReference = always(ObjectReference)
    reason: str = ""
    message: str = ""
    source: EventSource = always(EventSource)
    first_timestamp: Time | None = null()
    last_timestamp: Time | None = null()
    count: Int32 = 0
    type: str = ""
    event_time: MicroTime | None = null()
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = always(str)
    reporting_instance: str = always(str)


class EventsSeries(Part):
    """EventSeries of events.k8s.io/v1, which is written whole."""

    count: Int32 = always(int)
    last_observed_time: MicroTime | None = null()


class EventsEvent(KubeObject):
    """events.k8s.io/v1: what core calls involvedObject and message is regarding and note here."""

    KIND: ClassVar[str] = "Event"
    API_VERSION: ClassVar[str] = "events.k8s.io/v1"

    event_time: MicroTime | None = null()
    series: EventsSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = always(ObjectReference)
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = always(EventSource)
    deprecated_first_timestamp: Time | None = null()
    deprecated_last_timestamp: Time | None = null()
    deprecated_count: Int32 = 0
