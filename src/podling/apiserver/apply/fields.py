"""Sets of fields, in the very form of `fieldsV1`: a tree of path elements. And which fields belong to which
endpoint: to the object itself or to a subresource, since nobody manages a field through an endpoint that does
not write it.

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {"k:{…}": {…}}}}

A path element is `f:` and the name of a field, `k:` and the keys of a list item, `v:` and the value of an
item of a set. A path is in the set if its node is empty or has a `.`; an empty root is the empty set. All
operations are pure: a parsed set may be shared, and results share parts with their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from podling.model.remembered import remembered

Fields = dict[str, Any]
"""A node: nodes by path element."""

SELF = "."
DEEPEST = 64
"""Levels of a set; no API type nests as deep."""

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(Fields).decode


class FieldsError(ValueError):
    """Bytes that are not a set of fields."""


def is_member(node: Fields) -> bool:
    return not node or SELF in node


def encode(fields: Fields) -> bytes:
    return _encode(fields)


@remembered(512, longest=8192)
def parse(data: bytes) -> Fields:
    """Parse `fieldsV1`. Cached, since many objects of one shape are managed alike. Raises FieldsError."""
    try:
        fields = _decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise FieldsError(str(error)) from error
    _check(fields, 0)
    return fields


def _check(node: Any, depth: int) -> None:
    if not isinstance(node, dict) or depth > DEEPEST:
        raise FieldsError("a set of fields is a tree of path elements")
    for element, below in node.items():
        if element != SELF:
            _check_element(element)
        _check(below, depth + 1)


def _check_element(element: str) -> None:
    sort, _, text = element.partition(":")
    if sort == "f" and text:
        return
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise FieldsError(f"{element} is no path element") from error
    if sort not in ("k", "v", "i") or (sort == "k") != isinstance(value, dict):
        raise FieldsError(f"{element} is no path element")


def union(ours: Fields, theirs: Fields) -> Fields:
    merged = dict(ours)
    for element, node in theirs.items():
        known = merged.get(element)
        merged[element] = node if known is None else _joined(known, node)
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


def _joined(ours: Fields, theirs: Fields) -> Fields:
    if ours == theirs:
        return ours
    both = union(ours, theirs)
    if not (ours and theirs):
        both[SELF] = {}
    return both


def difference(ours: Fields, theirs: Fields) -> Fields:
    """Paths in `ours` and not in `theirs`. Losing a path does not lose the paths below it."""
    if not theirs:
        return ours
    left = {}
    for element, node in ours.items():
        gone = theirs.get(element)
        rest = node if gone is None else _without(node, gone)
        if rest is not None:
            left[element] = rest
    return left


def _without(node: Fields, gone: Fields) -> Fields | None:
    below = difference(_below(node), _below(gone))
    return _node(below, is_member(node) and not is_member(gone))


def intersection(ours: Fields, theirs: Fields) -> Fields:
    shared = {}
    for element, node in ours.items():
        other = theirs.get(element)
        both = None if other is None else _common(node, other)
        if both is not None:
            shared[element] = both
    return shared


def _common(ours: Fields, theirs: Fields) -> Fields | None:
    below = intersection(_below(ours), _below(theirs))
    return _node(below, is_member(ours) and is_member(theirs))


def _below(node: Fields) -> Fields:
    return {element: below for element, below in node.items() if element != SELF} if SELF in node else node


def _node(below: Fields, member: bool) -> Fields | None:
    """A node with these children; None if neither it nor anything below it is in the set."""
    if member:
        return {**below, SELF: {}} if below else {}
    return below or None


def paths(fields: Fields, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path in the set, that of a node before those below it."""
    for element in sorted(fields):
        if element != SELF:
            path = (*above, element)
            if is_member(fields[element]):
                yield path
            yield from paths(fields[element], path)


def shown(path: tuple[str, ...]) -> str:
    """As Kubernetes prints a path: `.spec.containers[name="app"].image`."""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    sort, _, text = element.partition(":")
    if sort == "f":
        return f".{text}"
    if sort == "k":
        keys = msgspec.json.decode(text).items()
        return f"[{','.join(f'{name}={_json(value)}' for name, value in keys)}]"
    return f"[={text}]" if sort == "v" else f"[{text}]"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_STATUS = "f:status"


def belonging(fields: Fields, subresource: str, has_status: bool) -> Fields:
    match subresource:
        case "status":
            return {element: fields[element] for element in (_STATUS, "f:metadata") if element in fields}
        case "ephemeralcontainers":
            found = _only(fields.get("f:spec", {}), "f:ephemeralContainers")
            return {"f:spec": found} if found else {}
        case "resize":
            found = _resized(fields.get("f:spec", {}))
            return {"f:spec": found} if found else {}
        case "finalize":
            return _only(fields, "f:spec")
        case _:
            return {e: below for e, below in fields.items() if e != _STATUS} if has_status else fields


def _resized(spec: Fields) -> Fields:
    """Resources and resize policies, of the pod and of each container."""
    found = _only(spec, "f:resources")
    for element in ("f:containers", "f:initContainers"):
        items = {
            key: _only(item, "f:resources") | _only(item, "f:resizePolicy")
            for key, item in spec.get(element, {}).items()
        }
        kept = {key: item for key, item in items.items() if item}
        if kept:
            found[element] = kept
    return found


def _only(fields: Fields, element: str) -> Fields:
    return {element: fields[element]} if element in fields else {}
