"""Definitions of custom resources get their names, and go when they are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.custom_resources import CustomResourceNames
from podling.model.errors import StatusError
from podling.model.types.apiextensions import CustomResourceDefinition

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    definitions = cluster.informers.of(CustomResourceDefinition)
    await cluster.run(CustomResourceNames(cluster.client, definitions, cluster.clock))
    return cluster


async def define(cluster: Cluster, plural: str, group: str = "example.test", **names: Any) -> None:
    version = {
        "name": "v1",
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    named = {"plural": plural, "kind": plural.capitalize(), **names}
    spec = {"group": group, "scope": "Cluster", "names": named, "versions": [version]}
    annotations = {"api-approved.kubernetes.io": "unapproved, for a test"}
    await cluster.make(
        CustomResourceDefinition, f"{plural}.{group}", "", metadata={"annotations": annotations}, spec=spec
    )
    await cluster.settle()


async def said(cluster: Cluster, plural: str, group: str = "example.test") -> dict[str, str]:
    found = await cluster.client.get(CustomResourceDefinition, f"{plural}.{group}")
    return {one.type: f"{one.status} {one.reason}" for one in found.status.conditions or ()}


async def test_names_are_accepted_and_nothing_is_served(started: Cluster) -> None:
    await define(started, "ones", shortNames=["o"])
    found = await started.client.get(CustomResourceDefinition, "ones.example.test")
    assert found.status.accepted_names == found.spec.names
    assert await said(started, "ones") == {
        "NamesAccepted": "True NoConflicts",
        "Established": "False NotServed",
    }


async def test_who_comes_late_gets_what_is_left_and_the_rest_when_it_is_free(started: Cluster) -> None:
    await define(started, "ones", shortNames=["o"])
    await define(started, "others", shortNames=["o"])
    assert await said(started, "others") == {
        "NamesAccepted": "False ShortNamesConflict",
        "Established": "False NotAccepted",
    }
    await started.client.delete(CustomResourceDefinition, "ones.example.test")
    await started.settle()
    assert (await said(started, "others"))["NamesAccepted"] == "True NoConflicts"


async def test_a_group_of_kubernetes_tells_of_its_approval(started: Cluster) -> None:
    await define(started, "ones", "example.k8s.io")
    told = await said(started, "ones", "example.k8s.io")
    assert told["KubernetesAPIApprovalPolicyConformant"] == "False UnapprovedAnnotation"


async def test_a_deleted_one_ends(started: Cluster) -> None:
    await define(started, "ones")
    await started.client.delete(CustomResourceDefinition, "ones.example.test")
    found = await started.client.get(CustomResourceDefinition, "ones.example.test")
    assert found.metadata.finalizers == ["customresourcecleanup.apiextensions.k8s.io"]
    assert (await said(started, "ones"))["Terminating"] == "True InstanceDeletionPending"
    await started.settle()
    with pytest.raises(StatusError, match="not found"):
        await started.client.get(CustomResourceDefinition, "ones.example.test")
