"""How the rooms of the API server look up objects that are stored, without knowing the store."""

from __future__ import annotations

from typing import Protocol, TypeVar

from podling.model.types.meta import KubeObject

T = TypeVar("T", bound=KubeObject)


class Find(Protocol):
    """Looks an object up as it stands."""

    def __call__(self, type: type[T], namespace: str, name: str) -> T | None: ...
