"""How a write changes `managedFields`, and what server-side apply makes of an object.

The store calls `Track` once defaults are set and before admission: fields that admission fills in have no
manager, as in Kubernetes, and what the server itself decides, such as a binding, changes no record. Applying
a configuration merges it into the object and removes the fields that its manager applied before and names no
longer. Fields that others manage with another value are conflicts, unless forced. If kubectl applied on the
client's side before, the annotation that it kept counts as its last configuration. Everything is pure and
works on plain JSON data, which is not changed in place.
"""

from __future__ import annotations

import json as stdlib_json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.apply.managed_fields import (
    BEFORE_FIRST_APPLY,
    UPDATE,
    Changes,
    Entries,
    Fields,
    Writer,
    applied,
    applier,
    belonging,
    difference,
    fields_of,
    intersection,
    is_member,
    paths,
    shown,
    starting_point,
    union_all,
    updated,
    without,
)
from podling.apiserver.apply.schema import (
    VALUE,
    Keyed,
    KeyMissing,
    Map,
    Node,
    Set,
    Struct,
    changes,
    changes_of_new,
    item_element,
    owned,
    schema_of,
    set_element,
)
from podling.model.codec import json
from podling.model.codec.json import without_nulls
from podling.model.errors import Cause, StatusError, bad_request
from podling.model.types.meta import KubeObject, ManagedFieldsEntry
from podling.watch.entry import Entry

KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Track = Callable[[Any, Entry | None], list[ManagedFieldsEntry]]
"""From the new object and the current one (None on create) to the entries. Raises StatusError 409."""


class Conflict(NamedTuple):
    manager: str
    """As it is told: name, subresource, version."""
    path: str


def conflicts(entries: Entries, taken: Fields, writer: Writer) -> list[Conflict]:
    """The conflicts: fields of `taken` that managers other than `writer` own, in order of managers
    and paths."""
    mine = applier(entries, writer)
    others = (entry for entry in entries if entry is not mine and entry.api_version == writer.api_version)
    found = []
    for entry in others:
        told = stdlib_json.dumps(entry.manager, ensure_ascii=False)
        if entry.subresource:
            told += f' with subresource "{entry.subresource}"'
        if entry.operation == UPDATE:
            told += f" using {entry.api_version}"
        found += [Conflict(told, shown(path)) for path in paths(intersection(fields_of(entry), taken))]
    return sorted(found)


def refusal(found: list[Conflict]) -> StatusError:
    """409 that names the managers and fields in conflict."""
    causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in found]
    listed = f"1 conflict: conflict with {found[0].manager}: {found[0].path}"
    if len(found) > 1:
        lines = []
        for manager in dict.fromkeys(conflict.manager for conflict in found):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {conflict.path}" for conflict in found if conflict.manager == manager]
        listed = f"{len(found)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", f"Apply failed with {listed}", causes=causes)


def merge(node: Node, live: Any, applied: Any) -> Any:
    """`live` with `applied` merged in. Both have the shape, but an atomic value of `live` may have another
    type."""
    if isinstance(node, Struct | Map) and isinstance(live, dict) and isinstance(applied, dict):
        merged = dict(live)
        for name, value in applied.items():
            merged[name] = merge(_member(node, name), live[name], value) if name in live else value
        return merged
    if isinstance(node, Keyed | Set) and isinstance(live, list) and isinstance(applied, list):
        return list(_merge_items(node, live, applied))
    return applied


def _member(node: Struct | Map, name: str) -> Node:
    return node.managed[name][1] if isinstance(node, Struct) and name in node.managed else VALUE


def _merge_items(node: Keyed | Set, live: list[Any], applied: list[Any]) -> Iterator[Any]:
    """Applied items in their order; each other item stays before the shared item that it preceded."""
    standing = [(_element(node, item), item) for item in live]
    wanted = [(_element(node, item), item) for item in applied]
    known, named = dict(standing), {element for element, _ in wanted}
    shared = deque(element for element, _ in wanted if element in known)
    at = 0
    for element, item in wanted:
        while at < len(standing) and (not shared or standing[at][0] != shared[0]):
            if standing[at][0] not in named:
                yield standing[at][1]
            at += 1
        if element not in known:
            yield item
            continue
        yield merge(_of(node), known[element], item)
        shared.popleft()
        at += 1
    yield from (item for element, item in standing[at:] if element not in named)


def _element(node: Keyed | Set, item: Any) -> str:
    return item_element(node, item) if isinstance(node, Keyed) else set_element(item)


def prune(node: Node, data: Any, last: Fields, managed: Fields) -> Any:
    """`data` without the fields of `last`, what its manager applied before, that no set of `managed` has.

    A struct or map is removed if nobody manages anything in it any more, a list item if nobody manages the
    item.
    """
    if isinstance(node, Struct | Map) and isinstance(data, dict):
        members = {}
        for name, value in data.items():
            element = f"f:{name}"
            if element not in last:
                members[name] = value
            elif element in managed:
                members[name] = prune(_member(node, name), value, last[element], managed[element])
        return members
    if isinstance(node, Keyed | Set) and isinstance(data, list):
        items = []
        for item in data:
            element = _element(node, item)
            if element not in last:
                items.append(item)
                continue
            others = managed.get(element)
            if not is_member(last[element]) or (others is not None and is_member(others)):
                items.append(prune(_of(node), item, last[element], others or {}))
        return items
    return data


def _of(node: Keyed | Set) -> Node:
    return node.of if isinstance(node, Keyed) else VALUE


class Application(msgspec.Struct, frozen=True):
    """One configuration being applied. `fields`: those it names of the part of the object that `writer` may
    write."""

    type: type[KubeObject]
    configuration: Mapping[str, Any]
    fields: Fields
    writer: Writer
    unwritten: Fields
    force: bool

    def known_entries(self, live: Any, entries: Entries, now: datetime) -> Entries:
        """The entries of the object. If it was never tracked, everything is managed by whoever wrote it
        before. Raises StatusError 400 for an object that cannot be tracked."""
        if entries:
            return entries
        before = Writer(BEFORE_FIRST_APPLY, self.writer.api_version)
        try:
            return updated((), self._belonging(changes_of_new(self.type, live)), before, now)
        except KeyMissing as missing:
            raise bad_request(f"failed to create manager for existing fields: {missing}") from missing

    def result(self, live: Any, entries: Entries) -> Any:
        """The data of the object after the configuration was applied to `live`."""
        schema = schema_of(self.type)
        merged = merge(schema, live, self.configuration)
        mine = applier(entries, self.writer)
        if mine is None:
            return merged
        others = (fields_of(entry) for entry in entries if entry is not mine)
        return prune(schema, merged, fields_of(mine), union_all((self.fields, *others)))

    def entries_after(self, live: Any, new: Any, entries: Entries, now: datetime) -> list[ManagedFieldsEntry]:
        """The entries after `live` became `new`. Raises StatusError 409 for conflicts."""
        made = self._belonging(changes(self.type, live, new))
        if not self.force and (found := self._conflicts(entries, made.taken, live)):
            raise refusal(found)
        return applied(entries, self.fields, made, self.writer, now)

    def _conflicts(self, entries: Entries, taken: Fields, live: Any) -> list[Conflict]:
        found = conflicts(entries, taken, self.writer)
        if not found or self.writer.manager != KUBECTL:
            return found
        # The fields of kubectl's last-applied annotation that still have the values applied are its own.
        text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED, "")
        try:
            standing = json.to_data(json.decode(text.encode(), self.type))
        except StatusError:
            return found
        mine = difference(owned(schema_of(self.type), standing), changes(self.type, live, standing).taken)
        allowed = {path for _, path in conflicts(entries, mine, self.writer)}
        return found if any(conflict.path not in allowed for conflict in found) else []

    def _belonging(self, made: Changes) -> Changes:
        subresource = self.writer.subresource
        return Changes(*(belonging(fields, subresource, self.unwritten) for fields in made))

    def keep_annotation(self, new: KubeObject) -> None:
        """Keep kubectl's last-applied annotation up to date, if the object has it."""
        if self.writer.manager == KUBECTL and LAST_APPLIED in new.metadata.annotations:
            text = msgspec.json.encode(self.configuration, order="sorted").decode()
            new.metadata.annotations[LAST_APPLIED] = f"{text}\n"


def unchanged(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
    return [] if standing is None else standing.object.metadata.managed_fields


def by_update(writer: Writer, *, unwritten: Fields, now: datetime) -> Track:
    def track(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        try:
            return entries(new, standing)
        except KeyMissing:
            # Of an object with a field that has no path, nobody is said to manage anything.
            return []

    def entries(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        sent, data = _taken_apart(new)
        if standing is None:
            made = changes_of_new(type(new), data)
            taken = belonging(made.taken, writer.subresource, unwritten)
            return updated(starting_point(sent, ()), Changes(taken, made.removed), writer, now)
        known = starting_point(sent, standing.object.metadata.managed_fields, writer.subresource)
        if not known:
            # Who wished not to be tracked is not, until somebody applies.
            return []
        made = changes(type(new), live_data(standing), data)
        made = Changes(*(without(fields, unwritten) for fields in made))
        return updated(known, made, writer, now)

    return track


def by_apply(application: Application, *, now: datetime) -> Track:
    def track(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        _, data = _taken_apart(new)
        if standing is None:
            return application.entries_after(data, data, (), now)
        live = live_data(standing)
        entries = application.known_entries(live, standing.object.metadata.managed_fields, now)
        # As the configuration has it: a default that it leaves out of an atomic value is a difference.
        after = application.entries_after(live, application.result(live, entries), entries, now)
        application.keep_annotation(new)
        return after

    return track


def live_data(standing: Entry) -> Any:
    # With `[]` where it is stored as null, as what is to take its place has it.
    return json.decode_data(without_nulls(standing.value, type(standing.object)))


def _taken_apart(new: KubeObject) -> tuple[Entries, Any]:
    """The entries that an object has, and its data without them."""
    sent, new.metadata.managed_fields = new.metadata.managed_fields, []
    return sent, json.to_data(new)
