"""What a write changed: the fields it set, and those it took away. Every write asks, so this must be quick.

Both sides are plain data of whole objects, as they are written: what is equal is not walked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from podling.apiserver.apply.fieldset import SELF, Fields
from podling.apiserver.apply.schema import (
    VALUE,
    Keyed,
    Map,
    Node,
    Set,
    Struct,
    item_element,
    schema_of,
    set_element,
)
from podling.model import json
from podling.model.meta import KubeObject


class Changes(NamedTuple):
    taken: Fields
    """Added or changed."""
    removed: Fields


def changes(type_: type[KubeObject], old: Any, new: Any) -> Changes:
    """From `old` to `new`, the data of two objects of `type_`."""
    found = Changes({}, {})
    _compare(schema_of(type_), old, new, found)
    return found


def changes_of_new(type_: type[KubeObject], new: Any) -> Changes:
    """Of an object that did not exist: what it has beyond an empty one."""
    return changes(type_, _empty(type_), new)


@functools.cache
def _empty(type_: type[KubeObject]) -> Any:
    return json.to_data(type_())


_Part = tuple[str, Node, Any]
"""Path element, shape, value."""


def parts(node: Node, value: Any) -> Iterator[_Part]:
    """The parts of a value that has parts."""
    if isinstance(node, Struct):
        managed = node.managed
        for name in value:
            if name in managed:
                yield *managed[name], value[name]
    elif isinstance(node, Keyed):
        for item in value:
            yield item_element(node, item), node.of, item
    elif isinstance(node, Map):
        for name in value:
            yield f"f:{name}", VALUE, value[name]
    elif isinstance(node, Set):
        for item in value:
            yield set_element(item), VALUE, item


def owned(node: Node, value: Any) -> Fields:
    """All there is of a value that was not there, itself included."""
    if node is VALUE:
        return {}
    found: Fields = {
        element: {} if part is VALUE else owned(part, below) for element, part, below in parts(node, value)
    }
    if found:
        found[SELF] = {}
    return found


def _compare(node: Node, old: Any, new: Any, found: Changes) -> None:
    if isinstance(node, Struct):
        _compare_members(node, old, new, found)
        return
    before = {element: value for element, _, value in parts(node, old)}
    for element, part, value in parts(node, new):
        if element in before:
            was = before.pop(element)
            if was != value:
                _note(element, part, was, value, found)
        else:
            _take(element, part, value, found)
    if before:
        found.removed.update(
            {element: owned(part, value) for element, part, value in parts(node, old) if element in before}
        )


def _compare_members(node: Struct, old: Any, new: Any, found: Changes) -> None:
    """Most members of most structs are the same, and need no path element."""
    for name, value in new.items():
        if name not in old:
            if name in node.managed:
                _take(*node.managed[name], value, found)
        elif old[name] != value and name in node.managed:
            _note(*node.managed[name], old[name], value, found)
    for name, value in old.items():
        if name not in new and name in node.managed:
            element, part = node.managed[name]
            found.removed[element] = owned(part, value)


def _take(element: str, part: Node, value: Any, found: Changes) -> None:
    """A part that was not there before."""
    if part is VALUE:
        found.taken[element] = {}
    elif isinstance(part, Keyed) and part.always:
        _note(element, part, [], value, found)
    else:
        found.taken[element] = owned(part, value)


def _note(element: str, part: Node, was: Any, value: Any, found: Changes) -> None:
    """A part that is there before and after, and not the same."""
    if part is VALUE:
        found.taken[element] = {}
        return
    below = Changes({}, {})
    _compare(part, was, value, below)
    if below.taken:
        found.taken[element] = below.taken
    if below.removed:
        found.removed[element] = below.removed
