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

from podling.apiserver.apply.fields import (
    Fields,
    belonging,
    difference,
    intersection,
    is_member,
    paths,
    shown,
    union_all,
)
from podling.apiserver.apply.managers import (
    BEFORE_FIRST_APPLY,
    UPDATE,
    Entries,
    Writer,
    applied,
    applier,
    fields_of,
    starting_point,
    updated,
)
from podling.apiserver.apply.schema import (
    VALUE,
    Changes,
    Keyed,
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
from podling.model.errors import Cause, StatusError
from podling.model.types.meta import KubeObject, ManagedFieldsEntry
from podling.watch.entry import Entry


class Conflict(NamedTuple):
    manager: str
    """As it is told: name, subresource, version."""
    path: str


def conflicts(entries: Entries, taken: Fields, writer: Writer) -> list[Conflict]:
    """The conflicts: fields of `taken` that managers other than `writer` own, in order of managers
    and paths."""
    mine = applier(entries, writer)
    others = (entry for entry in entries if entry is not mine and entry.api_version == writer.api_version)
    return sorted(conflict for entry in others for conflict in _with(entry, taken))


def _with(entry: ManagedFieldsEntry, taken: Fields) -> Iterator[Conflict]:
    for path in paths(intersection(fields_of(entry), taken)):
        yield Conflict(_told(entry), shown(path))


def _told(entry: ManagedFieldsEntry) -> str:
    told = stdlib_json.dumps(entry.manager, ensure_ascii=False)
    if entry.subresource:
        told += f' with subresource "{entry.subresource}"'
    return f"{told} using {entry.api_version}" if entry.operation == UPDATE else told


def refusal(found: list[Conflict]) -> StatusError:
    """409 that names the managers and fields in conflict."""
    causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in found]
    return StatusError(409, "Conflict", f"Apply failed with {_listed(found)}", causes=causes)


def _listed(found: list[Conflict]) -> str:
    if len(found) == 1:
        return f"1 conflict: conflict with {found[0].manager}: {found[0].path}"
    lines = []
    for manager in dict.fromkeys(conflict.manager for conflict in found):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {conflict.path}" for conflict in found if conflict.manager == manager]
    return f"{len(found)} conflicts: " + "\n".join(lines)


def merge(node: Node, live: Any, applied: Any) -> Any:
    """`live` with `applied` merged in. Both have the shape, but an atomic value of `live` may have another
    type."""
    if isinstance(node, Struct | Map) and isinstance(live, dict) and isinstance(applied, dict):
        return _merge_members(node, live, applied)
    if isinstance(node, Keyed | Set) and isinstance(live, list) and isinstance(applied, list):
        return list(_merge_items(node, live, applied))
    return applied


def _merge_members(node: Struct | Map, live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    merged = dict(live)
    for name, value in applied.items():
        merged[name] = merge(_member(node, name), live[name], value) if name in live else value
    return merged


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
        return dict(_pruned_members(node, data, last, managed))
    if isinstance(node, Keyed | Set) and isinstance(data, list):
        return list(_pruned_items(node, data, last, managed))
    return data


def _pruned_members(
    node: Struct | Map, data: dict[str, Any], last: Fields, managed: Fields
) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        element = f"f:{name}"
        if element not in last:
            yield name, value
        elif element in managed:
            yield name, prune(_member(node, name), value, last[element], managed[element])


def _pruned_items(node: Keyed | Set, data: list[Any], last: Fields, managed: Fields) -> Iterator[Any]:
    for item in data:
        element = _element(node, item)
        if element not in last:
            yield item
            continue
        others = managed.get(element)
        if not is_member(last[element]) or (others is not None and is_member(others)):
            yield prune(_of(node), item, last[element], others or {})


def _of(node: Keyed | Set) -> Node:
    return node.of if isinstance(node, Keyed) else VALUE


KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Application(msgspec.Struct, frozen=True):
    """One configuration being applied. `fields`: those it names of the part of the object that `writer` may
    write."""

    type: type[KubeObject]
    configuration: Mapping[str, Any]
    fields: Fields
    writer: Writer
    has_status: bool
    force: bool

    def known_entries(self, live: Any, entries: Entries, now: datetime) -> Entries:
        """The entries of the object. If it was never tracked, everything is managed by whoever wrote it
        before."""
        if entries:
            return entries
        before = Writer(BEFORE_FIRST_APPLY, self.writer.api_version)
        return updated((), self._belonging(changes_of_new(self.type, live)), before, now)

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
        allowed = {path for _, path in conflicts(entries, _last_applied(self.type, live), self.writer)}
        return found if any(conflict.path not in allowed for conflict in found) else []

    def _belonging(self, made: Changes) -> Changes:
        subresource = self.writer.subresource
        return Changes(*(belonging(fields, subresource, self.has_status) for fields in made))

    def keep_annotation(self, new: KubeObject) -> None:
        """Keep kubectl's last-applied annotation up to date, if the object has it."""
        if self.writer.manager == KUBECTL and LAST_APPLIED in new.metadata.annotations:
            text = msgspec.json.encode(self.configuration, order="sorted").decode()
            new.metadata.annotations[LAST_APPLIED] = f"{text}\n"


def _last_applied(type_: type[KubeObject], live: Any) -> Fields:
    """The fields of kubectl's last-applied annotation that still have the values applied."""
    text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED, "")
    try:
        standing = json.to_data(json.decode(text.encode(), type_))
    except StatusError:
        return {}
    schema = schema_of(type_)
    return difference(owned(schema, standing), changes(type_, live, standing).taken)


Track = Callable[[Any, Entry | None], list[ManagedFieldsEntry]]
"""From the new object and the current one (None on create) to the entries. Raises StatusError 409."""


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
    """The entries that an object has, and its data without them."""
    sent, new.metadata.managed_fields = new.metadata.managed_fields, []
    return sent, json.to_data(new)
