"""`metadata.managedFields`: who manages which fields, as pure functions from the entries and a write.

A writer that updates a field becomes its only manager. A writer that applies a field shares it with others
who apply the same value. An entry is identified by manager, operation, subresource and, for updates, API
version. Paths are those of the entry's version, so a write in one version does not change entries of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from podling.apiserver.apply.fields import Fields, FieldsError, difference, encode, parse, union, union_all
from podling.apiserver.apply.schema import Changes
from podling.model.time import rfc3339
from podling.model.types.meta import ManagedFieldsEntry

APPLY, UPDATE = "Apply", "Update"
FIELDS_V1 = "FieldsV1"
MOST_UPDATERS = 10
"""Entries of updates that are kept apart; older ones are merged, as in Kubernetes."""
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"

Entries = Sequence[ManagedFieldsEntry]


class Writer(NamedTuple):
    """Who writes, with which operation, and through which version and subresource."""

    manager: str
    api_version: str
    subresource: str = ""


def fields_of(entry: ManagedFieldsEntry) -> Fields:
    """The set of fields of an entry. Raises FieldsError."""
    return parse(bytes(entry.fields_v1))


def starting_point(sent: Entries, live: Entries, subresource: str = "") -> Entries:
    """The entries that a write starts from: those in its body, or those stored if the body's are unreadable
    or only a part of the object is written. A body with one empty entry asks to reset all."""
    if subresource or not sent or sent is live:
        return live
    if list(sent) == [ManagedFieldsEntry()]:
        return ()
    known = set(map(_identity, live))
    try:
        return [entry if _identity(entry) in known else _readable(entry) for entry in sent] or live
    except FieldsError:
        return live


def _identity(entry: ManagedFieldsEntry) -> tuple[str | bytes, ...]:
    """What identifies an entry."""
    writer = entry.manager, entry.operation, entry.api_version, entry.subresource
    return *writer, entry.time, entry.fields_type, bytes(entry.fields_v1)


def _readable(entry: ManagedFieldsEntry) -> ManagedFieldsEntry:
    if entry.operation not in (APPLY, UPDATE) or entry.fields_type != FIELDS_V1:
        raise FieldsError(f"{entry.manager} does neither apply nor update")
    return _with(entry, fields_of(entry))


def updated(entries: Entries, changes: Changes, writer: Writer, now: datetime) -> list[ManagedFieldsEntry]:
    """The entries after an update that made `changes`."""
    taken, removed = changes
    if not taken and not removed:
        return list(entries)
    mine = next((entry for entry in entries if _is_updater(entry, writer)), None)
    others = [entry for entry in entries if entry is not mine]
    result = lose(others, writer, taken, removed)
    fields = union(difference(fields_of(mine), removed), taken) if mine else taken
    if fields:
        time = rfc3339(now) if taken or mine is None else mine.time
        result.append(_entry(writer, UPDATE, fields, time))
    return _in_order(_capped(result))


def applied(
    entries: Entries, fields: Fields, changes: Changes, writer: Writer, now: datetime
) -> list[ManagedFieldsEntry]:
    """The entries after `fields` were applied, which made `changes`."""
    mine = applier(entries, writer)
    result = lose([entry for entry in entries if entry is not mine], writer, *changes)
    if fields:
        same = mine is not None and not any(changes) and fields_of(mine) == fields
        time = mine.time if mine is not None and same else rfc3339(now)
        result.append(_entry(writer, APPLY, fields, time))
    return _in_order(result)


def applier(entries: Entries, writer: Writer) -> ManagedFieldsEntry | None:
    """The entry of what `writer` applied before."""
    known = (APPLY, writer.manager, writer.subresource)
    found = (entry for entry in entries if (entry.operation, entry.manager, entry.subresource) == known)
    return next(found, None)


def _is_updater(entry: ManagedFieldsEntry, writer: Writer) -> bool:
    known = (entry.manager, entry.api_version, entry.subresource)
    return entry.operation == UPDATE and known == writer


def lose(entries: Entries, writer: Writer, taken: Fields, removed: Fields) -> list[ManagedFieldsEntry]:
    """The entries of others without what `writer` took from them; empty ones are dropped."""
    left = []
    for entry in entries:
        if entry.api_version != writer.api_version:
            left.append(entry)
            continue
        before = fields_of(entry)
        fields = difference(difference(before, taken), removed)
        if fields:
            left.append(entry if fields == before else _with(entry, fields))
    return left


def _entry(writer: Writer, operation: str, fields: Fields, time: str) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=writer.manager,
        operation=operation,
        api_version=writer.api_version,
        time=time,
        fields_type=FIELDS_V1,
        fields_v1=msgspec.Raw(encode(fields)),
        subresource=writer.subresource,
    )


def _with(entry: ManagedFieldsEntry, fields: Fields) -> ManagedFieldsEntry:
    return msgspec.structs.replace(entry, fields_v1=msgspec.Raw(encode(fields)))


def _capped(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    """Merge the oldest updates of each version until at most MOST_UPDATERS are left."""
    updates = sorted((entry for entry in entries if entry.operation == UPDATE), key=_age)
    excess = len(updates) - MOST_UPDATERS
    oldest: dict[str, list[ManagedFieldsEntry]] = {}
    for entry in updates:
        if excess <= 0:
            break
        same = oldest.setdefault(entry.api_version, [])
        same.append(entry)
        excess -= len(same) > 1
    together = [same for same in oldest.values() if len(same) > 1]
    gone = {id(entry) for same in together for entry in same}
    return [*(entry for entry in entries if id(entry) not in gone), *map(_joined, together)]


def _joined(entries: list[ManagedFieldsEntry]) -> ManagedFieldsEntry:
    """Of one version, the newest last."""
    newest = entries[-1]
    fields = union_all(map(fields_of, entries))
    return _entry(Writer(ANCIENT, newest.api_version), UPDATE, fields, newest.time)


def _age(entry: ManagedFieldsEntry) -> tuple[str, str]:
    return entry.time, entry.manager


def _in_order(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    return sorted(entries, key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource))
