"""Each group and version that the server has, has an APIService."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podling.controllers.api_services import LocalServices
from podling.model.scheme import RESOURCES
from podling.model.types.apiregistration import APIService

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


async def test_each_group_has_one_that_is_available(cluster: Cluster) -> None:
    await cluster.run(LocalServices(cluster.client))
    made = (await cluster.client.list(APIService)).items
    served = {f"{resource.version}.{resource.group}" for resource in RESOURCES}
    assert {one.metadata.name for one in made} == served - {"v1.apiregistration.k8s.io"}
    assert {one.status.conditions[0].reason for one in made} == {"Local"}


async def test_one_that_is_there_stays_as_it_is(cluster: Cluster) -> None:
    spec = {"group": "apps", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    await cluster.make(APIService, "v1.apps", "", spec=spec)
    await cluster.run(LocalServices(cluster.client))
    assert (await cluster.client.get(APIService, "v1.apps")).spec.version_priority == 1
