"""One object with one field changed at a time, asked of both servers."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from peer.sequence import MERGE_PATCH, Ask

GONE = object()
"""In place of a value: the field is left out."""


def changed(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of `base` with another value at `path`, such as `spec.ports.0.name`."""
    made = copy.deepcopy(base)
    *way, last = path.split(".")
    at: Any = made
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
    if value is GONE:
        del at[last]
    elif isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return made


def created(target: str, base: dict[str, Any], changes: Iterable[tuple[str, Any]]) -> list[Ask]:
    """Each change in an object of its own."""
    asks = []
    for index, (path, value) in enumerate(changes):
        body = changed(base, path, value)
        if path != "metadata.name":
            body["metadata"]["name"] = f"{base['metadata']['name']}-{index}"
        asks.append(Ask("POST", target, body))
    return asks


def updated(target: str, base: dict[str, Any], changes: Iterable[tuple[str, Any]]) -> list[Ask]:
    """The object is created, and each change sent as a merge patch of it."""
    name = base["metadata"]["name"]
    patches = [
        Ask(
            "PATCH",
            f"{target}/{name}",
            changed({}, path, None if value is GONE else value),
            {"Content_Type": MERGE_PATCH},
        )
        for path, value in changes
    ]
    return [
        Ask("POST", target, base),
        *patches,
        Ask("GET", f"{target}/{name}"),
        Ask("DELETE", f"{target}/{name}"),
    ]
