"""How layers below the store look up stored objects: a protocol that the store implements."""

from __future__ import annotations

from typing import Protocol, TypeVar

from podling.model.types.meta import KubeObject

T = TypeVar("T", bound=KubeObject)


class Find(Protocol):
    """Looks up the current state of an object; None if there is none."""

    def __call__(self, type: type[T], namespace: str, name: str) -> T | None: ...
