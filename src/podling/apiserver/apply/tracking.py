"""How a write keeps track of who manages what: called by the store once defaults are in and before admission.

A field that admission fills in is nobody's, as in Kubernetes. What the server itself decides, such as a
binding, changes no record.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from podling.apiserver.apply.application import Application
from podling.apiserver.apply.compare import Changes, changes, changes_of_new
from podling.apiserver.apply.managers import Entries, Writer, starting_point, updated
from podling.apiserver.apply.parts import belonging
from podling.model import json
from podling.model.meta import KubeObject, ManagedFieldsEntry
from podling.model.nil_lists import without_nulls
from podling.watch.entry import Entry

Track = Callable[[Any, Entry | None], list[ManagedFieldsEntry]]
"""The entries of a new object in place of what stands (None: of nothing). Raises StatusError 409."""


def unchanged(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
    return [] if standing is None else standing.object.metadata.managed_fields


def by_update(writer: Writer, *, has_status: bool, now: datetime) -> Track:
    def track(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        sent, data = _taken_apart(new)
        if standing is None:
            made = changes_of_new(type(new), data)
            taken = belonging(made.taken, writer.subresource, has_status)
            return updated(starting_point(sent, ()), Changes(taken, made.removed), writer, now)
        entries = starting_point(sent, standing.object.metadata.managed_fields, writer.subresource)
        if not entries:
            # Who wished not to be tracked is not, until somebody applies.
            return []
        return updated(entries, changes(type(new), live_data(standing), data), writer, now)

    return track


def by_apply(application: Application, *, now: datetime) -> Track:
    def track(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        _, data = _taken_apart(new)
        if standing is None:
            return application.entries_after(data, data, (), now)
        live = live_data(standing)
        entries = application.known_entries(live, standing.object.metadata.managed_fields, now)
        after = application.entries_after(live, data, entries, now)
        application.keep_annotation(new)
        return after

    return track


def live_data(standing: Entry) -> Any:
    # With `[]` where it is stored as null, as what is to take its place has it.
    return json.decode_data(without_nulls(standing.value, type(standing.object)))


def _taken_apart(new: KubeObject) -> tuple[Entries, Any]:
    """The entries an object brings, and its data without them."""
    sent, new.metadata.managed_fields = new.metadata.managed_fields, []
    return sent, json.to_data(new)
