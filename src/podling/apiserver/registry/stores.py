"""All stores together, as admission looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from podling.apiserver.registry.store import UNRULED, Store
from podling.model.meta import KubeObject
from podling.watch.entry import Entry

T = TypeVar("T", bound=KubeObject)


class Stores:
    """Keeps the promise of `podling.apiserver.admission.plugin.Objects`."""

    def __init__(self, stores: Sequence[Store[Any]]) -> None:
        self._by_type = {store.type: store for store in stores}

    def find(self, type: type[T], namespace: str, name: str) -> T | None:
        store = self._by_type[type]
        entry = store.cache.get(store.prefix(namespace) + name)
        return cast(T, entry.object) if entry is not None else None

    def get(self, type: type[T], namespace: str, name: str) -> T:
        """Raises StatusError 404."""
        return cast(T, self._by_type[type].find(namespace, name).object)

    def all(self, type: type[T], namespace: str = "") -> Iterable[T]:
        store = self._by_type[type]
        for entry in store.cache.select(store.prefix(namespace)).entries:
            yield cast(T, entry.object)

    async def change(
        self, type: type[T], namespace: str, name: str, change: Callable[[T], None], *, dry_run: bool
    ) -> None:
        store = self._by_type[type]

        def changed(standing: Entry) -> Any:
            copy = store.copy(standing)
            change(copy)
            return copy

        await store.update(namespace, name, changed, _Unasked(), rules=UNRULED, dry_run=dry_run)


class _Unasked:
    """What admission itself writes is not admitted again."""

    async def admit(self, new: Any, old: Any) -> None: ...

    async def validate(self, new: Any, old: Any) -> None: ...
