"""Strategic merge patch: a merge patch that knows which lists are sets of named items.

Patch strategy and merge key of a list come from the types. Directives in the patch add to that:

    $patch: replace | delete               of the map, or the list item, that holds it
    $retainKeys: [...]                     keys of this map that stay; all others are removed
    $deleteFromPrimitiveList/FIELD: [...]  items to remove from a list of scalars
    $setElementOrder/FIELD: [...]          the order of the listed items; others keep theirs between them

Neither document nor patch is changed; a null removes a field.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from podling.apiserver.patch.errors import rejected
from podling.model.errors import bad_request

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
SET_ORDER = "$setElementOrder/"

Map = dict[str, Any]


class Field(NamedTuple):
    """How a field is patched. `inner` looks up the fields of its value, or of its items."""

    inner: Lookup
    merges: bool = False
    merge_key: str = ""


Lookup = Callable[[str], Field]


def untyped(_: str) -> Field:
    """Of maps whose keys are data: nested maps merge, lists are replaced."""
    return Field(untyped)


def strategic_merge_patch(document: Map, patch: Any, lookup: Lookup) -> Map:
    """`document` with `patch` merged in. Raises StatusError 400 or 422."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is a JSON object")
    return _merge_map(document, patch, lookup)


def _merge_map(original: Map, patch: Map, lookup: Lookup) -> Map:
    if DIRECTIVE in patch:
        return _directed(patch)
    result = _retained(original, patch)
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        patch = _merge_in_order(result, patch, key, lookup)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            _delete_items(result, key.removeprefix(DELETE_FROM), value)
        elif value is None:
            result.pop(key, None)
        elif key != RETAIN_KEYS:
            result[key] = _merge_value(result.get(key), value, lookup(key))
    return result


def _directed(patch: Map) -> Map:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise bad_request(f"unknown patch type [{other}] in map")


def _retained(original: Map, patch: Map) -> Map:
    if RETAIN_KEYS not in patch:
        return dict(original)
    keep = {key for key in _list(patch[RETAIN_KEYS], RETAIN_KEYS) if isinstance(key, str)}
    for key in patch:
        if not key.startswith("$") and key not in keep:
            raise rejected(f"{RETAIN_KEYS} does not list {key}, which the patch sets")
    return {key: value for key, value in original.items() if key in keep}


def _merge_value(original: Any, patch: Any, field: Field) -> Any:
    if isinstance(original, dict) and isinstance(patch, dict):
        return _merge_map(original, patch, field.inner)
    if isinstance(original, list) and isinstance(patch, list) and field.merges:
        return _merge_list(original, patch, field)
    return _taken(patch)


def _taken(value: Any) -> Any:
    """A value only the patch has, without what is meant for the merge."""
    if isinstance(value, dict):
        if value.get(DIRECTIVE) == "delete":
            return {}
        return {
            key: _taken(item) for key, item in value.items() if item is not None and not key.startswith("$")
        }
    if isinstance(value, list):
        return [_taken(item) for item in value if not (isinstance(item, dict) and item.get(DIRECTIVE))]
    return value


def _merge_list(original: list[Any], patch: list[Any], field: Field) -> list[Any]:
    merged, named = _merged_items(original, patch, field)
    return _arrange(merged, named, original, field.merge_key)


def _merged_items(original: list[Any], patch: list[Any], field: Field) -> tuple[list[Any], list[Any]]:
    """Original and patch merged, in no order yet; and the items of the patch that remain in it."""
    if not field.merge_key:
        return list({_identity(item, ""): item for item in [*original, *patch]}.values()), patch
    items = [item for item in patch if not (isinstance(item, dict) and DIRECTIVE in item)]
    directed = [item for item in patch if isinstance(item, dict) and DIRECTIVE in item]
    if any(item[DIRECTIVE] == "replace" for item in directed):
        return items, items
    gone = {_identity(item, field.merge_key) for item in directed if _deletes(item)}
    merged = [item for item in original if _identity(item, field.merge_key) not in gone]
    _merge_named(merged, items, field)
    return merged, items


def _deletes(item: Map) -> bool:
    if item[DIRECTIVE] == "delete":
        return True
    raise bad_request(f"unknown patch type [{item[DIRECTIVE]}] in list")


def _merge_named(merged: list[Any], items: list[Any], field: Field) -> None:
    """Each into the first of its name, or behind all others."""
    places: dict[Any, int] = {}
    for at, existing in enumerate(merged):
        places.setdefault(_identity(existing, field.merge_key), at)
    for item in items:
        place = places.setdefault(_identity(item, field.merge_key), len(merged))
        if place < len(merged):
            merged[place] = _merge_map(merged[place], item, field.inner)
        else:
            merged.append(_taken(item))


def _merge_in_order(result: Map, patch: Map, directive: str, lookup: Lookup) -> Map:
    """Merge the list a $setElementOrder speaks of into `result`; returns what of the patch is left to do."""
    key = directive.removeprefix(SET_ORDER)
    rest = {name: value for name, value in patch.items() if name not in (key, directive)}
    order = _list(patch[directive], directive)
    original, items, field = result.get(key), patch.get(key), lookup(key)
    known: list[Any] = original if isinstance(original, list) else []
    if isinstance(items, list):
        _check_order(items, order, field.merge_key, key)
        merged = _merged_items(known, items, field)[0] if known else _taken(items)
    elif key in patch:
        return {**rest, key: items}
    else:
        merged = known
    if known or key in patch:
        result[key] = _arrange(merged, order, known, field.merge_key)
    return rest


def _check_order(items: list[Any], order: list[Any], merge_key: str, key: str) -> None:
    names = [
        _identity(item, merge_key) for item in items if not (isinstance(item, dict) and DIRECTIVE in item)
    ]
    places = iter([_identity(item, merge_key) for item in order])
    if not all(name in places for name in names):
        raise bad_request(f"the order in patch list {key} doesn't match {SET_ORDER}{key} list")


def _arrange(items: list[Any], named: Sequence[Any], original: Sequence[Any], merge_key: str) -> list[Any]:
    """Items the patch names in its order, the others in the original's, merged like two sorted lists.

    Where the original does not know one of two, the one the patch names goes first.
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


def _delete_items(result: Map, key: str, items: Any) -> None:
    gone = {_identity(item, "") for item in _list(items, DELETE_FROM + key)}
    if isinstance(result.get(key), list):
        result[key] = [item for item in result[key] if _identity(item, "") not in gone]


def _identity(item: Any, merge_key: str) -> Any:
    if merge_key:
        if not isinstance(item, dict) or merge_key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {merge_key}")
        item = item[merge_key]
    if isinstance(item, dict | list):
        raise bad_request(f"{item} cannot be told apart from other items of its list")
    return item


def _list(value: Any, directive: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"the value of {directive} is a list")
    return value
