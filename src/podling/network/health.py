"""What the service proxy tells of itself and of services, as kube-proxy does: `/healthz` and `/livez`, and at
the `healthCheckNodePort` of services that lead to a node's own endpoints alone, how many it has.
"""

from __future__ import annotations

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
from podling.network.listeners import Listeners
from podling.network.services import Key
from podling.process.small_http import NOT_FOUND, Answer, listening, serving

JSON = "application/json"

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
        self._address, self._is_healthy = address, is_healthy
        self._wanted: dict[Key, Local] = {}

        async def cannot_listen(place: tuple[Key, int], error: OSError) -> None:
            failed(*place, str(error))

        self._listeners = Listeners[tuple[Key, int]](self._listening, cannot_listen)
        self.run = self._listeners.run

    def put(self, key: Key, local: Local | None) -> None:
        before = self._wanted.pop(key, None)
        if local is not None:
            self._wanted[key] = local
        if before is not None and (local is None or local.port != before.port):
            self._listeners.want((key, before.port), is_wanted=False)
        if local is not None:
            self._listeners.want((key, local.port))

    async def _listening(self, place: tuple[Key, int]) -> AsyncExitStack:
        """Until it is closed. Raises OSError."""
        key, port = place

        def answer(method: str, target: str) -> Answer:
            local = self._wanted.get(key)
            return of_service(key, local.endpoints if local else 0, is_healthy=self._is_healthy())

        made = AsyncExitStack()
        await made.enter_async_context(serving(answer, listening(self._address, port)))
        return made
