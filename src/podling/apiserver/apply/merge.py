"""What an object becomes when a configuration is applied: merged in, less what its manager applies no longer.

Plain data in, plain data out; nothing is changed in place. Parts that are one value are taken whole, structs
and maps member by member, lists with keys and sets item by item.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from podling.apiserver.apply.fieldset import Fields, is_member
from podling.apiserver.apply.schema import VALUE, Keyed, Map, Node, Set, Struct, item_element, set_element


def merge(node: Node, live: Any, applied: Any) -> Any:
    """`live` with `applied` in it. Both are of the shape, but `live` may have another type of value."""
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
    """Applied items in their order; others stay before the shared item they stood before."""
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
    """`data` without the fields of `last`, what its manager applied before, that are in no set of `managed`.

    A struct or map goes when nobody manages anything in it any more, an item when nobody manages the item.
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
