"""`metadata.managedFields`: sets of fields, and who manages which.

A set of fields has the very form of `fieldsV1`, a tree of path elements:

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {"k:{…}": {…}}}}

A path element is `f:` and the name of a field, `k:` and the keys of a list item, `v:` and the value of an
item of a set. A path is in the set if its node is empty or has a `.`; an empty root is the empty set. A
parsed set may be shared, and results share parts with their arguments.

A writer that updates a field becomes its only manager. A writer that applies a field shares it with others
who apply the same value. An entry is identified by manager, operation, subresource and, for updates, API
version. Paths are those of the entry's version: what a write changes is looked at in the version of each
entry. An entry of a version that is not known goes. What an object and its scale both have is managed in the
entries of the object, and those of the scale are made of them. Everything here is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from podling.model.codec import pieces
from podling.model.remembered import remembered
from podling.model.time import rfc3339
from podling.model.types.meta import NO_FIELDS, ManagedFieldsEntry
from podling.process.waits import giving_way, is_aside

Fields = dict[str, Any]
"""A node: nodes by path element."""
Entries = Sequence[ManagedFieldsEntry]

SELF = "."
NOTHING = (b"", b"null")
"""No set of fields, which is an empty one."""
DEEPEST = 64
"""Levels of a set; no API type nests as deep."""
_STATUS = "f:status"

APPLY, UPDATE = "Apply", "Update"
FIELDS_V1 = "FieldsV1"
MOST_UPDATERS = 10
"""Entries of updates that are kept apart; older ones are merged, as in Kubernetes."""
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(Fields).decode


class FieldsError(ValueError):
    """Bytes that are not a set of fields."""


class VersionError(ValueError):
    """The version of an entry is none, so that nothing can be told of its fields."""


def is_member(node: Fields) -> bool:
    return not node or SELF in node


def encode(fields: Fields) -> bytes:
    return pieces.encode(fields, giving_way(_encode)) if is_aside() else _encode(fields)


@remembered(512, longest=8192)
def parse(data: bytes) -> Fields:
    """Parse `fieldsV1`. Cached, since many objects of one shape are managed alike. Raises FieldsError."""
    if data in NOTHING:
        return {}
    try:
        fields = _decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise FieldsError(str(error)) from error
    _check(fields, 0)
    # The whole object is no field.
    fields.pop(SELF, None)
    return fields


def _check(node: Any, depth: int) -> None:
    """Nodes that are null become empty."""
    if not isinstance(node, dict) or depth > DEEPEST:
        raise FieldsError("a set of fields is a tree of path elements")
    for element, below in node.items():
        sort, _, text = element.partition(":")
        if element != SELF and not element.startswith("f:"):
            try:
                value = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
                raise FieldsError(f"{element} is no path element") from error
            if sort not in ("k", "v", "i") or (sort == "k") != isinstance(value, dict):
                raise FieldsError(f"{element} is no path element")
        if below is None:
            node[element] = {}
        else:
            _check(below, depth + 1)


def union(ours: Fields, theirs: Fields) -> Fields:
    merged = dict(ours)
    for element, node in theirs.items():
        known = merged.get(element)
        if known is None or known == node:
            merged[element] = node
            continue
        both = merged[element] = union(known, node)
        if not (known and node):
            # One of them was a member by being empty.
            both[SELF] = {}
    return merged


def union_all(sets: Iterable[Fields]) -> Fields:
    """The union of many sets, in time linear in their size."""
    merged: Fields = {}
    for fields in sets:
        _absorb(merged, fields)
    return merged


def _absorb(ours: Fields, theirs: Fields) -> None:
    """Add `theirs` to `ours`, in place; `ours` shares nothing with anybody."""
    for element, node in theirs.items():
        known = ours.get(element)
        if known is None:
            known = ours[element] = {}
        elif not known or not node:
            known.update({SELF: {}} if known or node else {})
        _absorb(known, node)


def difference(ours: Fields, theirs: Fields) -> Fields:
    """Paths in `ours` and not in `theirs`. Losing a path does not lose the paths below it."""
    if not theirs:
        return ours
    left = {}
    for element, node in ours.items():
        rest: Fields | None = node
        if (gone := theirs.get(element)) is not None:
            below = difference(_below(node), _below(gone))
            rest = _node(below, is_member(node) and not is_member(gone))
        if rest is not None:
            left[element] = rest
    return left


def intersection(ours: Fields, theirs: Fields) -> Fields:
    shared = {}
    for element, node in ours.items():
        if (other := theirs.get(element)) is not None:
            below = intersection(_below(node), _below(other))
            both = _node(below, is_member(node) and is_member(other))
            if both is not None:
                shared[element] = both
    return shared


def _below(node: Fields) -> Fields:
    return {element: below for element, below in node.items() if element != SELF} if SELF in node else node


def _node(below: Fields, member: bool) -> Fields | None:
    """A node with these children; None if neither it nor anything below it is in the set."""
    if member:
        return {**below, SELF: {}} if below else {}
    return below or None


def paths(fields: Fields, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path in the set: those of the members of a node before those below them."""
    elements = sorted(fields.keys() - {SELF})
    yield from ((*above, element) for element in elements if is_member(fields[element]))
    for element in elements:
        yield from paths(fields[element], (*above, element))


def shown(path: tuple[str, ...]) -> str:
    """As Kubernetes prints a path: `.spec.containers[name="app"].image`."""
    told = ""
    for element in path:
        sort, _, text = element.partition(":")
        if sort == "f":
            told += f".{text}"
        elif sort == "k":
            keys = msgspec.json.decode(text).items()
            told += f"[{','.join(f'{name}={_encode(value).decode()}' for name, value in keys)}]"
        else:
            told += f"[={text}]" if sort == "v" else f"[{text}]"
    return told


def belonging(fields: Fields, subresource: str, unwritten: Fields) -> Fields:
    """The fields that belong to an endpoint: the object itself, or a subresource of it. Nobody manages a
    field through an endpoint that does not write it: `unwritten` are those that this one never does."""
    if subresource == "status":
        fields = _only(fields, _STATUS) | _only(fields, "f:metadata")
    return without(fields, unwritten)


def without(fields: Fields, unwritten: Fields) -> Fields:
    """`fields` but for the leaves of `unwritten` and everything below them."""
    kept = {}
    for element, below in fields.items():
        if element not in unwritten:
            kept[element] = below
        elif unwritten[element] and (not below or without(below, unwritten[element])):
            kept[element] = without(below, unwritten[element])
    return kept


def _only(fields: Fields, element: str) -> Fields:
    return {element: fields[element]} if element in fields else {}


class Changes(NamedTuple):
    """The fields in which a write changes an object."""

    taken: Fields
    """Added or changed."""
    removed: Fields


class Writer(NamedTuple):
    """Who writes, with which operation, and through which version and subresource."""

    manager: str
    api_version: str
    subresource: str = ""


Elsewhere = Callable[[str], Changes | None]
"""What a write changes, as another version of the object has it; None if there is no such version."""


def nowhere(version: str) -> None:
    """There is no other version."""


def fields_of(entry: ManagedFieldsEntry) -> Fields:
    """The set of fields of an entry. Raises FieldsError."""
    return parse(bytes(entry.fields_v1))


def starting_point(sent: Entries, live: Entries, subresource: str = "") -> Entries:
    """The entries that a write starts from: those in its body, or those stored if the body's are unreadable
    or only a part of the object is written. A body with one empty entry asks to reset all. Raises
    VersionError."""
    return distinct(_sent(sent, live, subresource))


def distinct(entries: Entries) -> Entries:
    """Of the entries that one writer has, the last, as in Kubernetes: their times do not tell them apart."""
    known = {_writer(entry): entry for entry in entries}
    return entries if len(known) == len(entries) else list(known.values())


def _writer(entry: ManagedFieldsEntry) -> tuple[str, ...]:
    version = "" if entry.operation == APPLY else entry.api_version
    return entry.manager, entry.operation, version, entry.subresource


def _sent(sent: Entries, live: Entries, subresource: str) -> Entries:
    if subresource or not sent or sent is live:
        return live
    entry = sent[0]
    if bytes(entry.fields_v1) in NOTHING:
        entry = msgspec.structs.replace(entry, fields_v1=NO_FIELDS)
    if len(sent) == 1 and entry == ManagedFieldsEntry():
        return ()
    known = set(map(_identity, live))
    try:
        kept = []
        for entry in sent:
            if _identity(entry) in known:
                kept.append(entry)
                continue
            if (
                entry.operation not in (APPLY, UPDATE)
                or entry.fields_type != FIELDS_V1
                or not entry.api_version
            ):
                return live
            kept.append(_with(entry, fields_of(entry)))
        if any(entry.api_version.count("/") > 1 for entry in kept):
            raise VersionError
        return kept or live
    except FieldsError:
        return live


def _identity(entry: ManagedFieldsEntry) -> tuple[str | bytes, ...]:
    """What identifies an entry."""
    writer = entry.manager, entry.operation, entry.api_version, entry.subresource
    return *writer, entry.time, entry.fields_type, bytes(entry.fields_v1)


def updated(
    entries: Entries, changes: Changes, writer: Writer, now: datetime, elsewhere: Elsewhere = nowhere
) -> list[ManagedFieldsEntry]:
    """The entries after an update that made `changes`."""
    taken, removed = changes
    if not taken and not removed:
        # Those of a version that this object does not have go nevertheless.
        return _in_order(_capped(lose(entries, writer, changes, elsewhere)))
    if not entries:
        return [_entry(writer, UPDATE, taken, rfc3339(now))] if taken else []
    updates = (entry for entry in entries if entry.operation == UPDATE)
    same = (e for e in updates if (e.manager, e.api_version, e.subresource) == writer)
    mine = next(same, None)
    others = [entry for entry in entries if entry is not mine]
    result = lose(others, writer, changes, elsewhere)
    fields = union(difference(fields_of(mine), removed), taken) if mine else taken
    if fields:
        time = rfc3339(now) if taken or mine is None else mine.time
        result.append(_entry(writer, UPDATE, fields, time))
    return _in_order(_capped(result))


def applied(
    entries: Entries,
    fields: Fields,
    changes: Changes,
    writer: Writer,
    now: datetime,
    elsewhere: Elsewhere = nowhere,
    *,
    differs: bool,
) -> list[ManagedFieldsEntry]:
    """The entries after `fields` were applied, which made `changes`. `differs`: whether the object is another
    with what was applied, be it in a part that cannot be written or in how the same is said."""
    mine = applier(entries, writer)
    result = lose([entry for entry in entries if entry is not mine], writer, changes, elsewhere)
    if fields:
        # An object that stays as it is leaves the time as it was, also unset.
        before = mine.time if mine is not None else ""
        time = rfc3339(now) if differs else before
        result.append(_entry(writer, APPLY, fields, time))
    return _in_order(result)


def applier(entries: Entries, writer: Writer) -> ManagedFieldsEntry | None:
    """The entry of what `writer` applied before."""
    known = (APPLY, writer.manager, writer.subresource)
    found = (entry for entry in entries if (entry.operation, entry.manager, entry.subresource) == known)
    return next(found, None)


def lose(
    entries: Entries, writer: Writer, changes: Changes, elsewhere: Elsewhere
) -> list[ManagedFieldsEntry]:
    """The entries of others without what `writer` took from them; empty ones are dropped."""
    left = []
    for entry in entries:
        made = changes if entry.api_version == writer.api_version else elsewhere(entry.api_version)
        if made is None:
            continue
        before = fields_of(entry)
        fields = difference(difference(before, made.taken), made.removed)
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
    updates = [entry for entry in entries if entry.operation == UPDATE]
    updates.sort(key=lambda entry: (entry.time, entry.manager))
    excess = len(updates) - MOST_UPDATERS
    oldest: dict[str, list[ManagedFieldsEntry]] = {}
    for entry in updates:
        if excess <= 0:
            break
        same = oldest.setdefault(entry.api_version, [])
        same.append(entry)
        excess -= len(same) > 1
    result = list(entries)
    for same in oldest.values():
        if len(same) > 1:
            gone, newest = set(map(id, same)), same[-1]
            result = [entry for entry in result if id(entry) not in gone]
            writer, fields = Writer(ANCIENT, newest.api_version), union_all(map(fields_of, same))
            result.append(_entry(writer, UPDATE, fields, newest.time))
    return result


def _in_order(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    return sorted(entries, key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource))


def of_projection(entries: Entries, fields: Fields, version: str, shown: str) -> list[ManagedFieldsEntry]:
    """Who manages `fields`, which an object of `version` and its projection both have, as entries of the
    projection, whose version is `shown`."""
    told = msgspec.Raw(encode(fields))
    return [
        msgspec.structs.replace(entry, api_version=shown, fields_v1=told)
        for entry in distinct(entries)
        if entry.api_version == version and _has(entry, fields)
    ]


def with_projection(
    entries: Entries, projected: Entries, fields: Fields, version: str
) -> list[ManagedFieldsEntry]:
    """The entries of an object, once `projected` are those of its projection. As in Kubernetes, who applied
    `fields` keeps the entry; who updates them has one with nothing else and no time, also who did before."""
    theirs = {_writer(entry): entry for entry in projected if _has(entry, fields)}
    left = []
    for entry in distinct(entries):
        if entry.api_version != version:
            continue
        if not _has(entry, fields) or theirs.pop(_writer(entry), None) is not None:
            left.append(entry)
        elif rest := difference(fields_of(entry), fields):
            left.append(_with(entry, rest))
    told = msgspec.Raw(encode(fields))
    left += [
        msgspec.structs.replace(entry, api_version=version, time="", fields_v1=told)
        for entry in theirs.values()
    ]
    return _in_order(left)


def _has(entry: ManagedFieldsEntry, fields: Fields) -> bool:
    return intersection(fields_of(entry), fields) == fields
