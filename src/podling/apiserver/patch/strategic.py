"""Strategic merge patch (`application/strategic-merge-patch+json`): a merge patch that merges some lists item
by item.

The patch strategy and the merge key of a list come from its type. The patch may add directives:

    $patch: replace | delete               replaces or empties the map, or deletes the list item, that has it
    $retainKeys: [...]                     all other keys of the map are removed
    $deleteFromPrimitiveList/FIELD: [...]  these items are removed from a list of scalars; for null, the list
    $setElementOrder/FIELD: [...]          these items take this order; the others stay among them

A null removes a field. Neither the document nor the patch is changed.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from podling.model.codec.fields import Shape, fields_of
from podling.model.codec.quoting import GO_TYPES, go_type, go_value
from podling.model.errors import bad_request

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
SET_ORDER = "$setElementOrder/"
DIRECTIVES = (DIRECTIVE, RETAIN_KEYS, DELETE_FROM, SET_ORDER)
"""How their names begin."""

T = TypeVar("T", dict[str, Any], list[Any])
Map = dict[str, Any]


class Field(NamedTuple):
    """How a field is patched."""

    inner: Lookup
    """Finds the fields of its value, or of the items of its list."""
    merges: bool = False
    """Its list is merged; otherwise the patch replaces it."""
    merge_key: str = ""
    """The field by which items of its list are told apart; empty for a list of scalars."""
    replaces: bool = False
    """A patch takes the place of its map, nulls and all."""


Lookup = Callable[[str], Field]


def untyped(_: str) -> Field:
    """The lookup for maps with arbitrary keys, such as labels: maps in them are merged, lists replaced."""
    return Field(untyped)


@functools.cache
def lookup_of(shape: Shape) -> Lookup:
    """The lookup for a type, by wire name. Unknown fields are patched as those of an untyped map."""
    if shape.struct is None:
        return untyped
    fields, known = fields_of(shape.struct), dict[str, Field]()

    def lookup(name: str) -> Field:
        if name in fields and name not in known:
            info = fields[name]
            strategies = info.merge.strategies
            inner = info.shape.item if info.shape.holds is list and info.shape.item else info.shape
            merges, replaces = ("merge" in strategies, "replace" in strategies)
            known[name] = Field(lookup_of(inner), merges, info.merge.key, replaces)
        return known.get(name) or Field(untyped)

    return lookup


def strategic_merge_patch(document: Map, patch: Any, lookup: Lookup) -> Map:
    """`document` with `patch` merged in. Raises StatusError 400 for a malformed patch."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is a JSON object")
    return _merge_map(document, patch, lookup)


def _merge_map(original: Map, patch: Map, lookup: Lookup) -> Map:
    match patch.get(DIRECTIVE):
        case None if DIRECTIVE not in patch:
            pass
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise bad_request(f"unknown patch type [{other}] in map")
    result = _retained(original, patch)
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        patch = _merge_in_order(result, patch, key, lookup)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            name = key.removeprefix(DELETE_FROM)
            if value is None:
                result.pop(name, None)
            elif isinstance(found := result.get(name), list) and isinstance(value, list):
                _check_alike(found, value)
                gone = {_identity(item, "") for item in value}
                result[name] = [item for item in found if _identity(item, "") not in gone]
        elif value is None:
            result.pop(key, None)
        elif _is_directed(value) and not isinstance(result.get(key), dict):
            pass  # It is about what is not there.
        elif key != RETAIN_KEYS:
            result[key] = _merge_value(result.get(key), value, lookup(key))
    return result


def _retained(original: Map, patch: Map) -> Map:
    if RETAIN_KEYS not in patch:
        return dict(original)
    named = patch[RETAIN_KEYS]
    keep = {key for key in named if isinstance(key, str)} if isinstance(named, list) else None
    if keep is None or not keep.issuperset(key for key in patch if not key.startswith("$")):
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keep}


def _merge_value(original: Any, patch: Any, field: Field) -> Any:
    if isinstance(original, dict) and isinstance(patch, dict):
        return patch if field.replaces else _merge_map(original, patch, field.inner)
    if isinstance(original, list) and isinstance(patch, list) and field.merges:
        merged, named = _merged_items(original, patch, field)
        return _arrange(merged, named, original, field.merge_key)
    return patch if isinstance(original, list) and isinstance(patch, list) else _taken(patch)


def _taken(value: Any, *, in_list: bool = False) -> Any:
    """A value that only the patch has, without the patch's directives and what they are about, and, but for
    what is in lists, without nulls: a null in a map of quantities is one of 0."""
    if isinstance(value, dict):
        return {
            key: _taken(item, in_list=in_list)
            for key, item in value.items()
            if not key.startswith(DIRECTIVES) and (in_list or item is not None) and not _is_directed(item)
        }
    if isinstance(value, list):
        return [_taken(item, in_list=True) for item in value if not _is_directed(item)]
    return value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and value.get(DIRECTIVE) is not None


def _merged_items(original: list[Any], patch: list[Any], field: Field) -> tuple[list[Any], list[Any]]:
    """The merged items of two lists, not yet in order, and the items of the patch that are not directives."""
    _check_alike(original, patch)
    if not field.merge_key:
        return list({_identity(item, ""): item for item in [*original, *patch]}.values()), patch
    items = [item for item in patch if not (isinstance(item, dict) and DIRECTIVE in item)]
    directed = [item for item in patch if isinstance(item, dict) and DIRECTIVE in item]
    if any(item[DIRECTIVE] == "replace" for item in directed):
        return items, items
    for item in directed:
        if item[DIRECTIVE] == "merge":
            raise bad_request("merging lists cannot yet be specified in the patch")
        if item[DIRECTIVE] != "delete":
            raise bad_request(f"unknown patch type [{item[DIRECTIVE]}] in list")
    gone = {_identity(item, field.merge_key) for item in directed}
    merged = [item for item in original if _identity(item, field.merge_key) not in gone]
    # Each is merged into the first of its name, or stands behind all others.
    places: dict[Any, int] = {}
    for at, existing in enumerate(merged):
        places.setdefault(_identity(existing, field.merge_key), at)
    for item in items:
        place = places.setdefault(_identity(item, field.merge_key), len(merged))
        if place < len(merged):
            merged[place] = _merge_map(merged[place], item, field.inner)
        else:
            merged.append(item)
    return merged, items


def _merge_in_order(result: Map, patch: Map, directive: str, lookup: Lookup) -> Map:
    """Merge the list that a $setElementOrder `directive` names into `result`. Returns the rest of the patch,
    without that list and the directive."""
    key = directive.removeprefix(SET_ORDER)
    rest = {name: value for name, value in patch.items() if name not in (key, directive)}
    order = _expect(list, patch[directive])
    original, field = result.get(key), lookup(key)
    known: list[Any] = original if isinstance(original, list) else []
    merged = known
    if key in patch:
        items = _expect(list, patch[key])
        names = [
            _identity(item, field.merge_key)
            for item in items
            if not (isinstance(item, dict) and DIRECTIVE in item)
        ]
        places = iter([_identity(item, field.merge_key) for item in order])
        if order and not all(name in places for name in names):
            raise bad_request(f"the order in patch list {key} doesn't match {SET_ORDER}{key} list")
        merged = _merged_items(known, items, field)[0] if known else _taken(items)
    elif known and order and field.merge_key and not isinstance(order[0], dict):
        raise bad_request("value for key 0 is not a map")
    if known or key in patch:
        result[key] = _arrange(merged, order, known, field.merge_key)
    return rest


def _arrange(items: list[Any], named: Sequence[Any], original: Sequence[Any], merge_key: str) -> list[Any]:
    """`items` in order: those in `named` as there, the others as in `original`.

    Both orders are merged like two sorted lists, by the places in `original`. An item that is not in
    `original` comes before the others that are left.
    """
    wanted, before = _positions(named, merge_key), _positions(original, merge_key)
    all_named = [(_identity(item, merge_key), item) for item in items]
    ours = sorted((each for each in all_named if each[0] in wanted), key=_by(wanted))
    theirs = deque(sorted((each for each in all_named if each[0] not in wanted), key=_by(before)))
    result: list[Any] = []
    for name, item in ours:
        place = before.get(name, -1)
        while theirs and before.get(theirs[0][0], place) < place:
            result.append(theirs.popleft()[1])
        result.append(item)
    return result + [item for _, item in theirs]


def _positions(items: Sequence[Any], merge_key: str) -> dict[Any, int]:
    positions: dict[Any, int] = {}
    for item in items:
        positions.setdefault(_identity(item, merge_key), len(positions))
    return positions


def _by(positions: dict[Any, int]) -> Callable[[tuple[Any, Any]], int]:
    return lambda named: positions.get(named[0], len(positions))


def _identity(item: Any, merge_key: str) -> Any:
    """What an item is told by from others of its list: its name, or itself."""
    if not merge_key:
        if isinstance(item, dict | list):
            raise bad_request(f"{go_value(item)} cannot be told apart from other items of its list")
        return item
    if merge_key not in _expect(dict, item):
        raise bad_request(f"map: {go_value(item)} does not contain declared merge key: {merge_key}")
    name = item[merge_key]
    return msgspec.json.encode(name) if isinstance(name, dict | list) else name


def _check_alike(original: list[Any], patch: list[Any]) -> None:
    """Items of two types cannot be merged; null is of a type of its own."""
    if len({type(item) for item in (*original, *patch)}) > 1:
        lists = f"[{go_value(original)} {go_value(patch)}]"
        raise bad_request(f"list element types are not identical: {lists}")


def _expect(kind: type[T], value: Any) -> T:
    if isinstance(value, kind):
        return value
    found = "%!s(<nil>)" if value is None else go_type(value)
    raise bad_request(f"expected a {GO_TYPES[kind]}, but received a {found}")
