"""Waiting, within a request, for an object to become what the request needs: woken by its changes, never by
time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from podling.apiserver.registry.store import Store
from podling.model.errors import service_unavailable


async def until(store: Store[Any], namespace: str, name: str, holds: Callable[[Any], bool]) -> Any:
    """The object, as soon as it is so. Raises StatusError: 404 when it is gone, 503 when this server ends,
    and whatever `holds` raises.
    """
    with closing(store.cache.watch(store.prefix(namespace) + name, store.cache.revision)) as changes:
        while not holds(obj := store.find(namespace, name).object):
            if await anext(changes, None) is None:
                raise service_unavailable("the server is shutting down")
    return obj
