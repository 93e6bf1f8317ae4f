"""`/healthz`, `/livez` and `/readyz`, with the checks and the answers of kube-apiserver.

A check that fails raises Unhealthy. The reason goes to the log only, since everyone may read these paths.
`/readyz/NAME` runs one check, `?exclude=NAME` leaves one out, and `?verbose` lists all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import TEXT, Response
from podling.process.health import named, outcome
from podling.storage.interface import Storage, StorageClosedError

Check = Callable[[], Awaitable[None]]
Checks = Mapping[str, Check]

LONGEST_CHECK = 2.0
"""Seconds after which a check counts as failed."""

Fault = Callable[[], str]
"""Returns what is wrong; empty if nothing is."""


log = logging.getLogger(__name__)


class Unhealthy(Exception):
    """A check failed; the message is for the log."""


async def ping() -> None:
    """Always healthy; responding is the check."""


class HealthPaths:
    """Serves the health paths. `live` checks fail if only a restart helps; `ready` checks also fail while
    requests should go to another server. `whole` are for all but `/livez`."""

    def __init__(self, live: Checks, ready: Checks, whole: Checks) -> None:
        healthy = {**live, **whole}
        self._checks = {"healthz": healthy, "livez": live, "readyz": {**healthy, **ready}}

    @property
    def paths(self) -> Collection[str]:
        each = [f"/{path}/{check}" for path, checks in self._checks.items() for check in checks]
        return [*(f"/{path}" for path in self._checks), *each]

    async def serve(self, context: RequestContext) -> Response | None:
        path, slash, name = context.info.path.removeprefix("/").partition("/")
        checks = self._checks.get(path)
        if checks is None:
            return None
        if slash:
            return await report_one(checks[name]) if name in checks else None
        query = context.query
        return await report(path, checks, verbose="verbose" in query, exclude=query.get("exclude", ()))


async def report(name: str, checks: Checks, *, verbose: bool, exclude: Iterable[str] = ()) -> Response:
    """The outcome of all `checks`. Each value of `exclude` has one or several names, separated by commas."""
    excluded = named(exclude)
    faults = {check: "" if check in excluded else await _failure(passes) for check, passes in checks.items()}
    if failures := [f"{check}: {why}" for check, why in faults.items() if why]:
        log.warning("%s check failed: %s", name, "; ".join(failures))
    return _text(*outcome(name, faults, verbose=verbose, excluded=excluded))


async def report_one(check: Check) -> Response:
    why = await _failure(check)
    return _text(500, f"internal server error: {why}\n") if why else _text(200, "ok")


async def _failure(check: Check) -> str:
    """Why `check` fails; empty if it passes."""
    try:
        async with asyncio.timeout(LONGEST_CHECK):
            await check()
    except TimeoutError:
        return f"no answer within {LONGEST_CHECK:g} seconds"
    except Unhealthy as unhealthy:
        return str(unhealthy)
    return ""


def _text(status: int, body: str) -> Response:
    return Response(status, body.encode(), TEXT, {"X-Content-Type-Options": "nosniff"})


def health_paths(
    storage: Storage, *, log: Fault, loading: Fault, shutdown: Fault, key_providers: Fault | None = None
) -> HealthPaths:
    """The checks of an API server. `log`: fault of the audit log; `loading`: of loading the watch caches;
    `shutdown`: non-empty once podling is ending; `key_providers`: fault of KMS plugins, if there are any."""

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
    whole: Checks = {"kms-providers": _check(key_providers)} if key_providers else {}
    return HealthPaths(live, ready, whole)


def _check(fault: Fault) -> Check:
    async def check() -> None:
        if why := fault():
            raise Unhealthy(why)

    return check
