"""All API types, for tests that hold something of each."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import msgspec

from podling.apiserver.paths.openapi.schemas import parts_of
from podling.model import types
from podling.model.codec.fields import Object


def every_kind() -> set[type[Object]]:
    """Each type in `model/types` that is a whole object."""
    modules = [import_module(f"{types.__name__}.{module.name}") for module in iter_modules(types.__path__)]
    return {found for module in modules for found in vars(module).values() if _is_kind(found)}


def every_type(kinds: set[type[Object]]) -> set[type[msgspec.Struct]]:
    """The kinds, and all types that they refer to."""
    found: set[type[msgspec.Struct]] = set()
    waiting: list[type[msgspec.Struct]] = [*kinds]
    while waiting:
        type_ = waiting.pop()
        if type_ not in found:
            found.add(type_)
            waiting.extend(parts_of(type_))
    return found


def _is_kind(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Object) and bool(found.KIND)
