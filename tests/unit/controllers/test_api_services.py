"""Each group and version that the server has, has an APIService."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podling.controllers.api_services import Availability, LocalServices
from podling.model.scheme import MEASURED, RESOURCES
from podling.model.types.apiregistration import APIService
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


async def test_each_group_has_one_that_is_available(cluster: Cluster) -> None:
    await cluster.run(LocalServices(cluster.client, measures=True))
    made = (await cluster.client.list(APIService)).items
    served = {f"{resource.version}.{resource.group}" for resource in (*RESOURCES, *MEASURED)}
    assert {one.metadata.name for one in made} == served - {"v1.apiregistration.k8s.io"}
    assert {one.status.conditions[0].reason for one in made} == {"Local"}


async def test_one_that_is_there_stays_as_it_is(cluster: Cluster) -> None:
    spec = {"group": "apps", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    await cluster.make(APIService, "v1.apps", "", spec=spec)
    await cluster.run(LocalServices(cluster.client, measures=True))
    assert (await cluster.client.get(APIService, "v1.apps")).spec.version_priority == 1


REMOTE = {"group": "a.test", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}


async def said(cluster: Cluster) -> tuple[str, str, str]:
    [one] = (await cluster.client.get(APIService, "v1.a.test")).status.conditions
    return one.status, one.reason, one.message


async def test_the_condition_says_what_is_missing_until_the_server_answers(cluster: Cluster) -> None:
    faults = ["it does not answer"]

    async def fault_of(service: APIService) -> str:
        return faults[0]

    informers = cluster.informers
    looks = Availability(
        cluster.client,
        informers.of(APIService),
        informers.of(Service),
        informers.of(EndpointSlice),
        cluster.clock,
        fault_of,
    )
    await cluster.run(looks)
    spec = {**REMOTE, "service": {"namespace": "ns", "name": "s"}}
    await cluster.make(APIService, "v1.a.test", "", spec=spec)
    await cluster.settle()
    assert await said(cluster) == ("False", "ServiceNotFound", 'service/s in "ns" is not present')
    service = await cluster.make(Service, "s", spec={"ports": [{"port": 80, "name": "web"}]})
    await cluster.settle()
    assert await said(cluster) == (
        "False",
        "ServicePortError",
        'service/s in "ns" is not listening on port 443',
    )
    service.spec.ports[0].port = 443
    await cluster.client.update(service)
    await cluster.settle()
    why = 'cannot find endpointslices for service/s in "ns"'
    assert await said(cluster) == ("False", "EndpointsNotFound", why)
    labels = {"kubernetes.io/service-name": "s"}
    part: dict[str, Any] = {"addressType": "IPv4", "ports": [{"name": "web", "port": 1}]}
    unready = [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}}]
    made = await cluster.make(EndpointSlice, "s-1", metadata={"labels": labels}, endpoints=unready, **part)
    await cluster.settle()
    why = 'endpointslices for service/s in "ns" have no addresses with port name "web"'
    assert await said(cluster) == ("False", "MissingEndpoints", why)
    made.endpoints[0].conditions.ready = True
    await cluster.client.update(made)
    await cluster.see()
    await looks.reconcile(("", "v1.a.test"))
    assert await said(cluster) == ("False", "FailedDiscoveryCheck", "it does not answer")
    faults[0] = ""
    await cluster.see()
    await looks.reconcile(("", "v1.a.test"))
    assert await said(cluster) == ("True", "Passed", "all checks passed")
    looks.queue.close()
