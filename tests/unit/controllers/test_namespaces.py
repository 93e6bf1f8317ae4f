"""A namespace goes once nothing is left in it, and says what is (R-SYS-1)."""

from __future__ import annotations

from typing import Any

import pytest

from podling.controllers.namespaces import Namespaces
from podling.model.config import ConfigMap, Secret
from podling.model.endpoint_slice import EndpointSlice
from podling.model.errors import StatusError
from podling.model.lease import Lease
from podling.model.namespace import Namespace
from podling.model.pod import Pod


@pytest.fixture
async def started(cluster: Any) -> Any:
    client, informers = cluster.client, cluster.informers
    namespaces, pods = informers.of(Namespace), informers.of(Pod)
    await cluster.run(Namespaces(client, namespaces, pods, cluster.clock))
    return cluster


async def test_all_in_it_goes_then_it_goes(started: Any) -> None:
    await started.make(ConfigMap, "a")
    await started.make(Lease, "a")
    await started.make(EndpointSlice, "a", addressType="IPv4")
    await started.client.delete(Namespace, "ns")
    await started.settle()
    with pytest.raises(StatusError) as gone:
        await started.client.get(Namespace, "ns")
    assert gone.value.code == 404
    assert await started.names(ConfigMap, "ns") + await started.names(Lease, "ns") == []


async def test_other_namespaces_are_left_alone(started: Any) -> None:
    await started.make(ConfigMap, "kept", "default")
    await started.client.delete(Namespace, "ns")
    await started.settle()
    assert await started.names(ConfigMap, "default") == ["kept"]


async def test_it_waits_for_what_is_held_and_says_so(started: Any) -> None:
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


async def test_the_last_pod_ends_the_wait(started: Any) -> None:
    await started.pod("p", node="n")
    await started.client.delete(Namespace, "ns")
    await started.settle()
    assert (await started.client.get(Pod, "p", "ns")).metadata.deletion_timestamp
    await started.client.delete(Pod, "p", "ns", grace_seconds=0)
    await started.settle()
    assert "ns" not in await started.names(Namespace)
