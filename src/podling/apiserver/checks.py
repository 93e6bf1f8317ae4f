"""What the health of this API server rests on, as checks under Kubernetes' names for them."""

from __future__ import annotations

from collections.abc import Callable

from podling.apiserver.health import Check, Checks, HealthPaths, Unhealthy, ping
from podling.storage.interface import Storage, StorageClosedError

Fault = Callable[[], str]
"""What is wrong, empty when nothing is."""


def health_paths(storage: Storage, *, log: Fault, loading: Fault, shutdown: Fault) -> HealthPaths:
    """`log` is that of audit; `loading` of the watch caches; `shutdown` that podling is about to end."""

    async def stores() -> None:
        try:
            await storage.probe()
        except StorageClosedError as error:
            raise Unhealthy(str(error)) from error

    live: Checks = {
        "ping": ping,
        "log": _check(log),
        "etcd": stores,
        "poststarthook/generic-apiserver-start-informers": _check(loading),
    }
    ready: Checks = {
        "etcd-readiness": stores,
        "informer-sync": _check(loading),
        "shutdown": _check(shutdown),
    }
    return HealthPaths(live, ready)


def _check(fault: Fault) -> Check:
    async def check() -> None:
        if why := fault():
            raise Unhealthy(why)

    return check
