"""What the proxy tells of itself and of services: answers and codes are those that kube-proxy 1.36 gave."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime

import pytest

from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node, NodeSpec, Taint
from podling.model.types.service import Service, ServiceSpec
from podling.network import listeners
from podling.network.health import (
    HealthPaths,
    HealthPorts,
    Local,
    ProxyHealth,
    is_eligible,
    local_health,
    of_service,
)
from podling.process.waits import Backoff
from ports import free_port

KEY = "default", "local"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SAID = (
    b'{\n\t"service": {\n\t\t"namespace": "default",\n\t\t"name": "local"\n\t},\n'
    b'\t"localEndpoints": 1,\n\t"serviceProxyHealthy": true\n}'
)


class Clock:
    def now(self) -> datetime:
        return NOW


def test_a_service_is_healthy_where_it_has_endpoints() -> None:
    said = of_service(KEY, 1, is_healthy=True)
    assert (said.status, said.content_type, said.body) == (200, "application/json", SAID)
    assert said.headers == ("X-Load-Balancing-Endpoint-Weight: 1",)
    assert of_service(KEY, 0, is_healthy=True).status == 503
    assert of_service(KEY, 1, is_healthy=False).status == 503


def test_ready_endpoints_of_the_node_are_counted_once() -> None:
    spec = ServiceSpec(external_traffic_policy="Local", health_check_node_port=30000)
    service = Service(metadata=ObjectMeta(name="local", namespace="default"), spec=spec)
    slices = [
        EndpointSlice(
            endpoints=[
                Endpoint(["10.0.0.1"], EndpointConditions(ready=True), node_name="n1"),
                Endpoint(["10.0.0.2"], EndpointConditions(ready=False), node_name="n1"),
                Endpoint(["10.0.0.3"], EndpointConditions(ready=True), node_name="n2"),
            ]
        )
    ] * 2
    assert local_health(service, slices, "n1") == Local(30000, 1)
    assert local_health(service, [], "n1") == Local(30000, 0)
    spec.external_traffic_policy = "Cluster"
    assert local_health(service, slices, "n1") is None
    assert local_health(None, slices, "n1") is None


@pytest.mark.parametrize(
    ("healthy", "eligible", "codes"),
    [(True, True, (200, 200)), (True, False, (503, 200)), (False, True, (503, 503))],
)
def test_the_proxy_itself(healthy: bool, eligible: bool, codes: tuple[int, int]) -> None:
    """Who is about to go is alive, and should be sent nothing any more."""
    paths = HealthPaths(Clock(), lambda: ProxyHealth({"IPv4": NOW}, healthy, eligible))
    said = [paths.answer("GET", path) for path in ("/healthz", "/livez")]
    assert tuple(one.status for one in said) == codes
    health, life = (json.loads(one.body) for one in said)
    assert health["nodeEligible"] is eligible
    assert list(life) == ["lastUpdated", "currentTime", "healthy", "status"]
    assert life["status"] == {"IPv4": {"lastUpdated": "2026-01-02T03:04:05Z", "healthy": healthy}}
    assert paths.answers == {("/healthz", codes[0]): 1, ("/livez", codes[1]): 1}
    assert paths.answer("GET", "/").status == 404


def test_a_node_that_goes_is_not_eligible() -> None:
    going = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule")
    assert is_eligible(Node())
    assert not is_eligible(None)
    assert not is_eligible(Node(spec=NodeSpec(taints=[going])))
    assert not is_eligible(Node(metadata=ObjectMeta(deletion_timestamp="2026-01-02T03:04:05Z")))


async def asked(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    said = await reader.read()
    writer.close()
    return said


async def until_answered(port: int) -> bytes:
    while True:
        try:
            return await asked(port)
        except OSError:
            await asyncio.sleep(0)


async def until_refused(port: int) -> None:
    while True:
        try:
            await asked(port)
        except OSError:
            return


async def test_a_port_is_open_for_as_long_as_its_service_has_it() -> None:
    failed = asyncio.Queue[tuple[tuple[str, str], int]]()
    ports = HealthPorts("127.0.0.1", lambda: True, lambda key, port, why: failed.put_nowait((key, port)))
    first, second = free_port(), free_port()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(ports.run())
        ports.put(KEY, Local(first, 1))
        said = await until_answered(first)
        assert said.startswith(b"HTTP/1.1 200 OK") and said.endswith(SAID)
        ports.put(KEY, Local(first, 0))
        assert b"503 Service Unavailable" in await asked(first)
        other = "default", "other"
        ports.put(other, Local(first, 1))
        assert await failed.get() == (other, first)
        # One gives up what another takes in the same turn.
        ports.put(KEY, Local(second, 1))
        ports.put(other, None)
        ports.put(other, Local(first, 1))
        await until_answered(second)
        assert b'"other"' in await until_answered(first)
        ports.put(KEY, None)
        await until_refused(second)
        running.cancel()


async def test_a_port_is_asked_for_again_until_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """And told of once."""
    monkeypatch.setattr(listeners, "AGAIN", Backoff(0.001, 0.001))
    failed = asyncio.Queue[int]()
    ports = HealthPorts("127.0.0.1", lambda: True, lambda key, port, why: failed.put_nowait(port))
    port = free_port()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(ports.run())
        with socket.create_server(("127.0.0.1", port)):
            ports.put(KEY, Local(port, 1))
            assert await failed.get() == port
        assert (await until_answered(port)).endswith(SAID)
        assert failed.empty()
        running.cancel()
