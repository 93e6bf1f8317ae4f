"""What differs between two objects, in lines to read: `- spec.nodeName: "a"`, `+ spec.nodeName: "b"`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podling.apiserver.registry.field import shown
from podling.model import json

MISSING = object()


def difference(old: Any, new: Any, path: str) -> str:
    return "\n".join(_lines(json.to_data(old), json.to_data(new), path))


def _lines(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _lines(old.get(key, MISSING), new.get(key, MISSING), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        for i in range(max(len(old), len(new))):
            yield from _lines(_at(old, i), _at(new, i), f"{path}[{i}]")
    else:
        if old is not MISSING:
            yield f"- {path}: {shown(old)}"
        if new is not MISSING:
            yield f"+ {path}: {shown(new)}"


def _at(items: list[Any], i: int) -> Any:
    return items[i] if i < len(items) else MISSING
