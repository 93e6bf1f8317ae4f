"""A namespace goes once nothing is left in it, and says what is (R-SYS-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.controllers.namespaces import Namespaces
from podling.model.errors import StatusError
from podling.model.types.coordination import Lease
from podling.model.types.core import ConfigMap, Namespace, Secret
from podling.model.types.discovery import EndpointSlice
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    informers = cluster.informers
    namespaces, pods = informers.of(Namespace), informers.of(Pod)
    claims = informers.of(PersistentVolumeClaim)
    await cluster.run(
        Namespaces(cluster.account("namespace-controller"), namespaces, pods, claims, cluster.clock)
    )
    return cluster


async def test_all_in_it_goes_then_it_goes(started: Cluster) -> None:
    await started.make(ConfigMap, "a")
    await started.make(Lease, "a")
    await started.make(EndpointSlice, "a", addressType="IPv4")
    await started.client.delete(Namespace, "ns")
    await started.settle()
    with pytest.raises(StatusError) as gone:
        await started.client.get(Namespace, "ns")
    assert gone.value.code == 404
    assert await started.names(ConfigMap, "ns") + await started.names(Lease, "ns") == []


async def test_other_namespaces_are_left_alone(started: Cluster) -> None:
    await started.make(ConfigMap, "kept", "default")
    await started.client.delete(Namespace, "ns")
    await started.settle()
    assert await started.names(ConfigMap, "default") == ["kept"]


async def test_it_waits_for_what_is_held_and_says_so(started: Cluster) -> None:
    await started.make(Secret, "held", metadata={"finalizers": ["x.io/hold"]})
    await started.client.delete(Namespace, "ns")
    await started.settle()
    said = {
        c.type: (c.status, c.message) for c in (await started.client.get(Namespace, "ns")).status.conditions
    }
    assert said["NamespaceContentRemaining"] == (
        "True",
        "Some resources are remaining: secrets. has 1 resource instances",
    )
    assert said["NamespaceFinalizersRemaining"] == (
        "True",
        "Some content in the namespace has finalizers remaining: x.io/hold in 1 resource instances",
    )
    assert said["NamespaceDeletionContentFailure"][0] == "False"


async def test_the_last_pod_ends_the_wait(started: Cluster) -> None:
    await started.pod("p", node="n")
    await started.client.delete(Namespace, "ns")
    await started.settle()
    assert (await started.client.get(Pod, "p", "ns")).metadata.deletion_timestamp
    await started.client.delete(Pod, "p", "ns", grace_seconds=0)
    await started.settle()
    assert "ns" not in await started.names(Namespace)


async def test_what_pods_use_stays_until_they_are_gone(started: Cluster) -> None:
    """The conditions are what kube-controller-manager 1.36 writes at each step."""
    await started.pod("p", node="n", metadata={"finalizers": ["x.io/pod"]})
    await started.make(ConfigMap, "used", metadata={"finalizers": ["x.io/hold"]})
    await started.make(Secret, "used")
    await started.client.delete(Namespace, "ns")
    await started.settle()
    assert await started.names(Secret, "ns") == ["used"]
    assert not (await started.client.get(ConfigMap, "used", "ns")).metadata.deletion_timestamp
    assert await said(started) == {
        "NamespaceDeletionDiscoveryFailure": "False: All resources successfully discovered",
        "NamespaceDeletionGroupVersionParsingFailure": "False: All legacy kube types successfully parsed",
        "NamespaceDeletionContentFailure": "False: "
        "All content successfully deleted, may be waiting on finalization",
        "NamespaceContentRemaining": "False: All content successfully removed",
        "NamespaceFinalizersRemaining": "False: All content-preserving finalizers finished",
    }
    await started.client.patch(Pod, "p", "ns", {"metadata": {"finalizers": None}})
    await started.client.delete(Pod, "p", "ns", grace_seconds=0)
    await started.settle()
    assert await started.names(Secret, "ns") == []
    assert (await said(started))["NamespaceContentRemaining"] == (
        "True: Some resources are remaining: configmaps. has 1 resource instances"
    )


async def said(cluster: Cluster) -> dict[str, str]:
    status = (await cluster.client.get(Namespace, "ns")).status
    return {condition.type: f"{condition.status}: {condition.message}" for condition in status.conditions}


async def test_its_last_words_are_that_nothing_is_left(started: Cluster) -> None:
    await started.make(ConfigMap, "held", metadata={"finalizers": ["x.io/hold"]})
    namespaces = started.informers.of(Namespace)
    changes: list[Namespace] = []
    namespaces.subscribe(lambda old, new: changes.append(new) if new else None)
    await started.client.delete(Namespace, "ns")
    await started.settle()
    await started.client.patch(ConfigMap, "held", "ns", {"metadata": {"finalizers": None}})
    await started.reconcile(("", "ns"))
    assert "ns" not in await started.names(Namespace)
    remaining = [c.status for c in changes[-1].status.conditions if c.type == "NamespaceContentRemaining"]
    assert remaining == ["False"]
