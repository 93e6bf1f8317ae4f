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

from podling.apiserver.apply.configuration import configured_fields
from podling.apiserver.apply.managed_fields import (
    BEFORE_FIRST_APPLY,
    UPDATE,
    Changes,
    Elsewhere,
    Entries,
    Fields,
    VersionError,
    Writer,
    applied,
    applier,
    belonging,
    difference,
    distinct,
    fields_of,
    intersection,
    is_member,
    nowhere,
    paths,
    shown,
    starting_point,
    union_all,
    updated,
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
from podling.model.errors import Cause, StatusError
from podling.model.types.meta import KubeObject, ManagedFieldsEntry
from podling.process.waits import give_way
from podling.watch.entry import Entry

KUBECTL = "kubectl"
UNMANAGED = "failed to create manager for existing fields"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NAMED: Fields = {"f:metadata": {"f:name": {}}}
"""What most configurations name, and nobody is recorded to manage."""

Track = Callable[[Any, Entry | None], list[ManagedFieldsEntry]]
"""From the new object and the current one (None on create) to the entries. Raises StatusError 409."""


class Conflict(NamedTuple):
    manager: str
    """As it is told: name, subresource, version."""
    path: str


class Version(NamedTuple):
    """Another version of an object: its type, and how to convert to it and back. Neither changes what it is
    given."""

    type: type[KubeObject]
    of: Callable[[Any], Any]
    back: Callable[[Any], Any]


Versions = Mapping[str, Version]
"""The other versions of a kind, by apiVersion."""


def in_versions(
    versions: Versions, new: KubeObject, standing: Entry | None, writer: Writer, unwritten: Fields
) -> Elsewhere:
    """What the write of `new` in place of `standing` changes in each of the other versions."""
    known: dict[str, Changes | None] = {}

    def elsewhere(api_version: str) -> Changes | None:
        if api_version not in known:
            known[api_version] = None
            if (version := versions.get(api_version)) is not None:
                data = _data(version.of(new))
                made = changes_of_new(version.type, data)
                if standing is not None:
                    made = changes(version.type, _data(version.of(standing.object)), data)
                known[api_version] = _belonging(made, writer, unwritten)
        return known[api_version]

    return elsewhere


def _belonging(made: Changes, writer: Writer, unwritten: Fields) -> Changes:
    return Changes(*(belonging(fields, writer.subresource, unwritten) for fields in made))


def _data(obj: KubeObject) -> Any:
    """The plain data of a converted object, which shares its metadata with the one that it was converted
    from, without managedFields."""
    obj.metadata = msgspec.structs.replace(obj.metadata, managed_fields=[])
    return json.to_data(obj)


def conflicts(
    entries: Entries,
    taken: Fields,
    writer: Writer,
    elsewhere: Elsewhere = nowhere,
) -> list[Conflict]:
    """The conflicts: fields of `taken` that managers other than `writer` own, in order of managers
    and paths."""
    mine = applier(entries, writer)
    found = []
    for entry in entries:
        theirs: Fields | None = taken
        if entry.api_version != writer.api_version:
            made = elsewhere(entry.api_version)
            theirs = made and made.taken
        if entry is mine or not theirs:
            continue
        told = stdlib_json.dumps(entry.manager, ensure_ascii=False)
        if entry.subresource:
            told += f' with subresource "{entry.subresource}"'
        if entry.operation == UPDATE:
            told += f" using {entry.api_version}"
        found += [Conflict(told, shown(path)) for path in paths(intersection(fields_of(entry), theirs))]
    return sorted(found, key=lambda conflict: conflict.manager)


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
    type. What has parts in `live` and is null in `applied` stays as it is."""
    if isinstance(node, Struct | Map) and isinstance(live, dict) and isinstance(applied, dict):
        merged = dict(live)
        for name, value in applied.items():
            part = _member(node, name)
            if value is not None or part is VALUE or not live.get(name):
                merged[name] = merge(part, live[name] if name in live else type(value)(), value)
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
            yield merge(_of(node), {}, item)
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
                left = prune(_member(node, name), value, last[element], managed[element])
                # A list of which nothing is left is gone, for all who manage it.
                if left != [] or value == []:
                    members[name] = left
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
    versions: Versions = {}

    def known_entries(self, standing: Entry, now: datetime) -> Entries:
        """The entries of the object. If it was never tracked, everything is managed by whoever wrote it
        before. Raises StatusError 400 for an object that cannot be tracked."""
        entries = distinct(standing.object.metadata.managed_fields)
        if entries:
            return entries
        before = self.writer._replace(manager=BEFORE_FIRST_APPLY)
        try:
            made = changes_of_new(self.type, live_data(standing))
            return updated((), _belonging(made, self.writer, self.unwritten), before, now)
        except KeyMissing:
            # Said with all that is wrong, and where.
            meta, (group, _, version) = standing.object.metadata, self.type.API_VERSION.rpartition("/")
            what = f"{meta.namespace}/{meta.name}; {group}/{version}, Kind={self.type.KIND}"
            failing = f"failed to convert new object ({what}) to smd typed"
            configured_fields(schema_of(self.type), live_data(standing), f"{UNMANAGED}: {failing}")
            raise

    def result(self, live: Any, entries: Entries) -> Any:
        """The data of the object after the configuration was applied to `live`."""
        merged = merge(schema_of(self.type), live, self.configuration)
        mine = applier(entries, self.writer)
        if mine is None:
            return merged
        managed = {self.writer.api_version: [self.fields]}
        for entry in entries:
            if entry is not mine:
                managed.setdefault(entry.api_version, []).append(fields_of(entry))
        before = fields_of(mine)
        pruned = self._pruned(merged, merged, mine.api_version, before, managed)
        others = [version for version in managed if version != mine.api_version]
        for version in others:
            # What somebody manages in another version comes back, as that version has it.
            pruned = self._pruned(merged, pruned, version, None, managed)
        # Only what was applied before goes. A version may have put something else in its place.
        return self._pruned(merged, pruned, mine.api_version, before, {}) if others else pruned

    def _pruned(
        self,
        merged: Any,
        pruned: Any,
        api_version: str,
        before: Fields | None,
        managed: Mapping[str, list[Fields]],
    ) -> Any:
        """`merged` without what `pruned` does not have, but for what somebody manages, as one version has it.
        `before`: only this goes, and all of it if nothing was pruned yet. A version that is not known changes
        nothing."""
        version = self.versions.get(api_version)
        if version is None and api_version != self.writer.api_version:
            return pruned
        schema = schema_of(version.type if version else self.type)
        whole, cut = (
            _data(version.of(json.from_data(data, self.type))) if version else data
            for data in (merged, pruned)
        )
        if before is None or pruned is not merged:
            gone = difference(owned(schema, whole), owned(schema, cut))
            before = gone if before is None else intersection(gone, before)
        metadata = self.configuration.get("metadata")
        # Of metadata in which nothing is said all stays, the name with it.
        named = NAMED if metadata == {} or (isinstance(metadata, dict) and "name" in metadata) else {}
        left = prune(schema, whole, before, union_all((named, *managed.get(api_version, ()))))
        return _data(version.back(json.from_data(left, version.type))) if version else left

    def entries_after(
        self, live: Any, new: Any, entries: Entries, now: datetime, elsewhere: Elsewhere
    ) -> list[ManagedFieldsEntry]:
        """The entries after `live` became `new`. Raises StatusError 409 for conflicts."""
        made = _belonging(changes(self.type, live, new), self.writer, self.unwritten)
        if not self.force and (found := self._conflicts(entries, made.taken, live, elsewhere)):
            raise refusal(found)
        return applied(entries, self.fields, made, self.writer, now, elsewhere, differs=live != new)

    def _conflicts(self, entries: Entries, taken: Fields, live: Any, elsewhere: Elsewhere) -> list[Conflict]:
        found = conflicts(entries, taken, self.writer, elsewhere)
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

    def keep_annotation(self, new: KubeObject) -> None:
        """Keep kubectl's last-applied annotation up to date, if the object has it."""
        if self.writer.manager == KUBECTL and LAST_APPLIED in new.metadata.annotations:
            text = msgspec.json.encode(self.configuration, order="sorted").decode()
            new.metadata.annotations[LAST_APPLIED] = f"{text}\n"


def unchanged(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
    return [] if standing is None else standing.object.metadata.managed_fields


def by_update(writer: Writer, *, unwritten: Fields, now: datetime, versions: Versions) -> Track:
    def track(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        try:
            return entries(new, standing)
        except (KeyMissing, VersionError):
            # Of an object with a field that has no path, or an entry of no version, nobody is said to manage
            # anything.
            return []

    def entries(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        sent, data = _taken_apart(new)
        elsewhere = in_versions(versions, new, standing, writer, unwritten)
        if standing is None:
            made = changes_of_new(type(new), data)
            taken = belonging(made.taken, writer.subresource, unwritten)
            return updated(starting_point(sent, ()), Changes(taken, made.removed), writer, now, elsewhere)
        known = starting_point(sent, standing.object.metadata.managed_fields, writer.subresource)
        if not known:
            # Who wished not to be tracked is not, until somebody applies.
            return []
        made = changes(type(new), live_data(standing), data)
        made = _belonging(made, writer, unwritten)
        return updated(known, made, writer, now, elsewhere)

    return track


def by_apply(application: Application, *, now: datetime) -> Track:
    def track(new: KubeObject, standing: Entry | None) -> list[ManagedFieldsEntry]:
        if standing is None:
            nothing = Changes({}, {})
            return applied((), application.fields, nothing, application.writer, now, differs=True)
        live = json.decode_data(standing.value)
        entries = application.known_entries(standing, now)
        elsewhere = in_versions(
            application.versions, new, standing, application.writer, application.unwritten
        )
        # As the configuration has it: a default that it leaves out of an atomic value is a difference.
        after = application.entries_after(live, application.result(live, entries), entries, now, elsewhere)
        application.keep_annotation(new)
        return after

    return track


def live_data(standing: Entry) -> Any:
    # With `[]` where it is stored as null, as a decoded object has it.
    return json.decode_data(without_nulls(standing.value, type(standing.object)))


def _taken_apart(new: KubeObject) -> tuple[Entries, Any]:
    """The entries that an object has, and its data without them."""
    sent, new.metadata.managed_fields = new.metadata.managed_fields, []
    give_way()
    return sent, json.to_data(new)
