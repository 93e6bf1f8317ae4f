"""A kind that is never stored: a question is posted, and the same object comes back with the answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, TypeVar

from podling.apiserver.judges import Judges
from podling.apiserver.registry.kind import Kind
from podling.apiserver.request import User
from podling.model.meta import KubeObject

T = TypeVar("T", bound=KubeObject)


class Review(Kind[T], Generic[T]):
    verbs = ("create",)

    def row(self, obj: T, now: datetime) -> list[Any]:
        """Reviews are not shown in tables."""
        return []

    def answer(self, obj: T, asker: User, judges: Judges, now: datetime) -> None:
        """Fill in the status of `obj`, which is valid. Raises StatusError."""
        raise NotImplementedError
