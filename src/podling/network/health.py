"""What the service proxy tells of itself and of services, as kube-proxy does: `/healthz` and `/livez`, and at
the `healthCheckNodePort` of services that lead to a node's own endpoints alone, how many it has.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from datetime import datetime
from typing import NamedTuple

from podling.model.rules.placement import GOING
from podling.model.time import Clock
from podling.model.types.discovery import EndpointSlice
from podling.model.types.node import Node
from podling.model.types.service import Service
from podling.network.services import Key
from podling.process.small_http import NOT_FOUND, Answer, listening, serving
from podling.process.waits import Backoff

JSON = "application/json"
AGAIN = Backoff(1.0, 30.0)
"""Until a port is asked for again at which nobody could listen."""

Failed = Callable[[Key, int, str], None]
"""Told of a service, its port, and why nobody can listen there."""


class Local(NamedTuple):
    """The health check of a service: its port, and how many of its endpoints are ready here."""

    port: int
    endpoints: int


def local_health(service: Service | None, slices: Iterable[EndpointSlice], node: str) -> Local | None:
    """None for a service that has no such check."""
    if service is None or service.spec.external_traffic_policy != "Local":
        return None
    if not service.spec.health_check_node_port:
        return None
    ready = {
        endpoint.addresses[0]
        for one in slices
        for endpoint in one.endpoints
        if endpoint.node_name == node and endpoint.addresses and endpoint.conditions.ready is not False
    }
    return Local(service.spec.health_check_node_port, len(ready))


def of_service(key: Key, endpoints: int, *, is_healthy: bool) -> Answer:
    """The answer of its port, to whatever is asked."""
    namespace, name = key
    said = {
        "service": {"namespace": namespace, "name": name},
        "localEndpoints": endpoints,
        "serviceProxyHealthy": is_healthy,
    }
    body = json.dumps(said, indent="\t").encode()
    weight = (f"X-Load-Balancing-Endpoint-Weight: {endpoints}",)
    return Answer(200 if endpoints and is_healthy else 503, JSON, body, weight)


def is_eligible(node: Node | None) -> bool:
    """Whether a balancer may send a node anything: not while it is going."""
    if node is None or node.metadata.deletion_timestamp:
        return False
    return not any(taint.key == GOING for taint in node.spec.taints)


class ProxyHealth(NamedTuple):
    """By address family, when the kernel last had all that was to be there, and whether it has it now."""

    updated: dict[str, datetime]
    is_healthy: bool
    is_eligible: bool


class HealthPaths:
    """Answers `/healthz` and `/livez`, and counts its answers by path and code."""

    def __init__(self, clock: Clock, look: Callable[[], ProxyHealth]) -> None:
        self._clock, self._look = clock, look
        self.answers: dict[tuple[str, int], int] = {}

    def answer(self, method: str, target: str) -> Answer:
        path = target.partition("?")[0]
        if path not in ("/healthz", "/livez"):
            return NOT_FOUND
        now, found = _stamp(self._clock.now()), self._look()
        families = {
            family: {"lastUpdated": _stamp(at), "healthy": found.is_healthy}
            for family, at in found.updated.items()
        }
        oldest = min((_stamp(at) for at in found.updated.values()), default=now)
        eligible = {"nodeEligible": found.is_eligible} if path == "/healthz" else {}
        is_fine = found.is_healthy and eligible.get("nodeEligible", True)
        said = {
            "lastUpdated": now if found.is_healthy else oldest,
            "currentTime": now,
            **eligible,
            "healthy": is_fine,
            "status": families,
        }
        code = 200 if is_fine else 503
        self.answers[path, code] = self.answers.get((path, code), 0) + 1
        return Answer(code, JSON, json.dumps(said, separators=(",", ":")).encode())


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


class HealthPorts:
    """Listens at the health check ports of services, at `address`. `run()` it."""

    def __init__(self, address: str, is_healthy: Callable[[], bool], failed: Failed) -> None:
        self._address, self._is_healthy, self._failed = address, is_healthy, failed
        self._wanted: dict[Key, Local] = {}
        self._changed: dict[Key, None] = {}
        self._wake = asyncio.Event()

    def put(self, key: Key, local: Local | None) -> None:
        before = self._wanted.pop(key, None)
        if local is not None:
            self._wanted[key] = local
        if (before and before.port) != (local and local.port):
            self._changed[key] = None
            self._wake.set()

    async def run(self) -> None:
        async with AsyncExitStack() as at_end:
            open_now: dict[Key, AsyncExitStack] = {}
            at_end.push_async_callback(_close, open_now)
            retry, missing = AGAIN.begin(), dict[Key, int]()
            while True:
                try:
                    async with asyncio.timeout(retry.next() if missing else None):
                        await self._wake.wait()
                    retry.reset()
                except TimeoutError:
                    self._changed |= dict.fromkeys(missing)
                self._wake.clear()
                keys, self._changed = self._changed, {}
                for key in keys:
                    if key in open_now:
                        await open_now.pop(key).aclose()
                # Only now: one may want the port that another had.
                for key in keys:
                    before, local = missing.pop(key, None), self._wanted.get(key)
                    if local is None:
                        continue
                    try:
                        open_now[key] = await self._listening(key, local.port)
                    except OSError as error:
                        missing[key] = local.port
                        if before != local.port:
                            self._failed(key, local.port, str(error))

    async def _listening(self, key: Key, port: int) -> AsyncExitStack:
        """Until it is closed. Raises OSError."""

        def answer(method: str, target: str) -> Answer:
            local = self._wanted.get(key)
            return of_service(key, local.endpoints if local else 0, is_healthy=self._is_healthy())

        made = AsyncExitStack()
        await made.enter_async_context(serving(answer, listening(self._address, port)))
        return made


async def _close(open_now: dict[Key, AsyncExitStack]) -> None:
    for one in open_now.values():
        await one.aclose()
