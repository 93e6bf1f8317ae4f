"""Who stands behind a service: Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.endpoint_slices import MOST, EndpointSlices
from podling.controllers.endpoints import EndpointsController
from podling.model.codec.json import to_data
from podling.model.types.discovery import EndpointSlice
from podling.model.types.pod import Pod
from podling.model.types.service import Endpoints, Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {"labels": {"app": "a"}}


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    client, of = cluster.client, cluster.informers.of
    services, pods = of(Service), of(Pod)
    await cluster.run(
        EndpointsController(client, services, pods, of(Endpoints)),
        EndpointSlices(client, services, pods, of(EndpointSlice)),
    )
    return cluster


async def service(cluster: Cluster, name: str = "web", **spec: Any) -> None:
    ports = [{"port": 80, "targetPort": "http"}]
    await cluster.make(Service, name, spec={"ports": ports, "selector": {"app": "a"}, **spec})


async def backend(cluster: Cluster, name: str, ip: str, *, ready: bool = True, **spec: Any) -> None:
    status = {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    ports = [{"name": "http", "containerPort": 8080}]
    containers = [{"name": "a", "image": "i", "ports": ports}]
    await cluster.pod(name, node="n", metadata=LABELS, spec={"containers": containers, **spec}, status=status)


async def shown(cluster: Cluster) -> list[tuple[list[str], list[str], list[int]]]:
    """(ready, not ready, ports) of every subset."""
    found = await cluster.client.get(Endpoints, "web", "ns")
    return [
        ([a.ip for a in s.addresses], [a.ip for a in s.not_ready_addresses], [p.port for p in s.ports])
        for s in found.subsets
    ]


async def slices(cluster: Cluster) -> list[EndpointSlice]:
    return list((await cluster.client.list(EndpointSlice, "ns")).items)


async def test_pods_stand_behind_a_service(started: Cluster) -> None:
    await service(started)
    await backend(started, "b", "10.0.0.2")
    await backend(started, "a", "10.0.0.1")
    await backend(started, "c", "10.0.0.3", ready=False)
    await started.settle()
    assert await shown(started) == [(["10.0.0.1", "10.0.0.2"], ["10.0.0.3"], [8080])]
    (slice,) = await slices(started)
    assert slice.metadata.labels["kubernetes.io/service-name"] == "web"
    assert slice.metadata.owner_references[0].kind == "Service"
    assert [(e.addresses, to_data(e.conditions)) for e in slice.endpoints][1:] == [
        (["10.0.0.2"], {"ready": True, "serving": True, "terminating": False}),
        (["10.0.0.3"], {"ready": False, "serving": False, "terminating": False}),
    ]
    assert slice.endpoints[0].target_ref is not None
    assert slice.endpoints[0].target_ref.name == "a"


async def test_ports_of_sidecars_count_and_those_of_init_containers_do_not(started: Cluster) -> None:
    """R-INIT-8"""
    ports = [{"name": "http", "containerPort": 9090}]
    sidecar = {"name": "s", "image": "i", "ports": ports, "restartPolicy": "Always"}
    app: dict[str, Any] = {"containers": [{"name": "a", "image": "i"}]}
    await service(started)
    await backend(started, "side", "10.0.0.1", **app, initContainers=[sidecar])
    sidecar = {"name": "s", "image": "i", "ports": ports}
    await backend(started, "init", "10.0.0.2", **app, initContainers=[sidecar])
    await started.settle()
    assert await shown(started) == [(["10.0.0.1"], [], [9090])]


async def test_a_pod_that_ends_still_serves_in_slices(started: Cluster) -> None:
    await service(started)
    await backend(started, "a", "10.0.0.1")
    await started.client.delete(Pod, "a", "ns")
    await started.settle()
    assert await shown(started) == []
    (slice,) = await slices(started)
    assert to_data(slice.endpoints[0].conditions) == {"ready": False, "serving": True, "terminating": True}
    await started.client.delete(Pod, "a", "ns", grace_seconds=0)
    await started.settle()
    assert [one.endpoints for one in await slices(started)] == [[]]


async def test_unready_addresses_may_be_published(started: Cluster) -> None:
    await service(started, publishNotReadyAddresses=True, clusterIP="None")
    await backend(started, "a", "10.0.0.1", ready=False)
    await started.settle()
    assert await shown(started) == [(["10.0.0.1"], [], [8080])]
    assert "service.kubernetes.io/headless" in (await slices(started))[0].metadata.labels


async def test_a_service_without_selector_is_left_alone(started: Cluster) -> None:
    await service(started, selector=None)
    await started.settle()
    assert await started.names(Endpoints, "ns") == []
    assert await slices(started) == []


async def test_both_go_with_the_service(started: Cluster) -> None:
    await service(started)
    await started.settle()
    assert await started.names(Endpoints, "ns") == ["web"]
    await started.client.delete(Service, "web", "ns")
    await started.settle()
    assert await started.names(Endpoints, "ns") == []
    assert await slices(started) == []


async def test_a_slice_holds_a_hundred(started: Cluster) -> None:
    await service(started)
    for n in range(MOST + 1):
        await backend(started, f"p{n}", f"10.0.0.{n + 1}")
    await started.settle()
    assert sorted(len(one.endpoints) for one in await slices(started)) == [1, MOST]
