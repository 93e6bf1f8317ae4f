"""Who stands behind a service: Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.endpoint_slices import MOST, ZONE_LABEL, EndpointSlices
from podling.controllers.endpoints import EndpointsController
from podling.controllers.selection import Selection
from podling.controllers.trigger_times import ANNOTATION
from podling.model.codec.json import to_data
from podling.model.time import rfc3339
from podling.model.types.discovery import EndpointSlice
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.service import Endpoints, Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

LABELS = {"labels": {"app": "a"}}


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    of = cluster.informers.of
    selection = Selection(of(Service), of(Pod))
    await cluster.run(
        EndpointsController(cluster.account("endpoint-controller"), selection, of(Endpoints)),
        EndpointSlices(cluster.account("endpointslice-controller"), selection, of(EndpointSlice), of(Node)),
    )
    await cluster.make(Node, "n", "")
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


@pytest.mark.parametrize("families", [["IPv4", "IPv6"], ["IPv6", "IPv4"], ["IPv6"]])
async def test_a_slice_is_of_one_family_and_endpoints_of_the_first(
    started: Cluster, families: list[str]
) -> None:
    policy = "RequireDualStack" if len(families) == 2 else "SingleStack"
    await service(started, clusterIP="None", ipFamilies=families, ipFamilyPolicy=policy)
    await started.settle()
    assert sorted(one.address_type for one in await slices(started)) == sorted(families)
    await backend(started, "a", "10.0.0.1")
    both = {"podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}]}
    await backend(started, "b", "10.0.0.2")
    await started.client.patch(Pod, "b", "ns", {"status": both}, subresource="status")
    await started.settle()
    of = {"IPv4": ["10.0.0.1", "10.0.0.2"], "IPv6": ["fd00::2"]}
    assert {one.address_type: [e.addresses[0] for e in one.endpoints] for one in await slices(started)} == {
        family: of[family] for family in families
    }
    assert [ready for ready, *_ in await shown(started)] == [of[families[0]]]


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


async def times(cluster: Cluster) -> set[str]:
    """Of the Endpoints and all slices."""
    await cluster.settle()
    found = [await cluster.client.get(Endpoints, "web", "ns"), *await slices(cluster)]
    return {one.metadata.annotations.get(ANNOTATION, "none") for one in found}


async def test_when_it_happened_is_told(started: Cluster) -> None:
    """The first of what has changed since; a service that comes again begins anew."""
    made = rfc3339(started.clock.now())
    for name, number in (("a", 1), ("b", 2)):
        await backend(started, name, f"10.0.0.{number}")
    await service(started)
    assert await times(started) == {made}
    for name, second in (("a", 7), ("b", 6)):
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": f"2026-01-02T03:05:0{second}Z"}
        status = {"status": {"conditions": [condition]}}
        await started.client.patch(Pod, name, "ns", status, subresource="status")
    assert await times(started) == {"2026-01-02T03:05:06Z"}
    await started.client.patch(Service, "web", "ns", {"metadata": {"labels": {"a": "b"}}})
    assert await times(started) == {"none"}
    await started.client.delete(Service, "web", "ns")
    await started.settle()
    started.clock.move(60)
    await service(started)
    assert await times(started) == {rfc3339(started.clock.now())}


async def test_a_pod_without_its_node_is_no_endpoint(started: Cluster) -> None:
    """Until the node is there; its zone is the endpoint's."""
    await started.client.delete(Node, "n", "")
    await backend(started, "a", "10.0.0.1")
    await service(started, trafficDistribution="PreferSameNode")
    await started.settle()
    assert [one.endpoints for one in await slices(started)] == [[]]
    await started.make(Node, "n", "", metadata={"labels": {ZONE_LABEL: "here"}})
    await started.settle()
    ((found,),) = [one.endpoints for one in await slices(started)]
    assert found.zone == "here"
    assert to_data(found.hints) == {"forZones": [{"name": "here"}], "forNodes": [{"name": "n"}]}
    await started.client.patch(Node, "n", "", {"metadata": {"labels": {ZONE_LABEL: None}}})
    await started.settle()
    ((found,),) = [one.endpoints for one in await slices(started)]
    assert (found.zone, to_data(found.hints)) == (None, {"forNodes": [{"name": "n"}]})
