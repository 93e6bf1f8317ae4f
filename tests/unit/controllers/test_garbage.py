"""Owners and dependents: background, foreground, orphan (R-SYS-1)."""

from __future__ import annotations

from typing import Any

import pytest

from podling.controllers.garbage import GarbageCollector
from podling.model.config import ConfigMap, Secret
from podling.model.meta import KubeObject


@pytest.fixture
async def started(cluster: Any) -> Any:
    await cluster.run(GarbageCollector(cluster.client, cluster.informers))
    return cluster


def owned_by(*owners: KubeObject, blocking: bool = False) -> dict[str, Any]:
    references = [
        {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            **({"blockOwnerDeletion": True} if blocking else {}),
        }
        for owner in owners
    ]
    return {"ownerReferences": references}


async def test_what_belongs_to_nobody_any_more_goes(started: Any) -> None:
    owner = await started.make(ConfigMap, "owner")
    child = await started.make(Secret, "child", metadata=owned_by(owner))
    await started.make(ConfigMap, "grandchild", metadata=owned_by(child))
    await started.settle()
    assert await started.names(Secret, "ns") == ["child"]
    await started.client.delete(ConfigMap, "owner", "ns")
    await started.settle()
    assert await started.names(Secret, "ns") == []
    assert await started.names(ConfigMap, "ns") == []


async def test_one_owner_is_enough_to_stay(started: Any) -> None:
    one, other = await started.make(ConfigMap, "one"), await started.make(ConfigMap, "other")
    await started.make(Secret, "child", metadata=owned_by(one, other))
    await started.client.delete(ConfigMap, "one", "ns")
    await started.settle()
    child = await started.client.get(Secret, "child", "ns")
    assert [ref.name for ref in child.metadata.owner_references] == ["other"]


async def test_an_owner_that_never_was_is_no_owner(started: Any) -> None:
    owner = ConfigMap()
    owner.metadata.name, owner.metadata.uid = "owner", "u"
    await started.make(ConfigMap, "owner")
    await started.make(Secret, "child", metadata=owned_by(owner))
    await started.settle()
    assert await started.names(Secret, "ns") == []


async def test_an_owner_of_an_unknown_kind_keeps_its_dependents(started: Any) -> None:
    reference = {"apiVersion": "x.io/v1", "kind": "Gadget", "name": "g", "uid": "u"}
    await started.make(Secret, "child", metadata={"ownerReferences": [reference]})
    await started.settle()
    assert await started.names(Secret, "ns") == ["child"]


async def test_orphans_are_let_go(started: Any) -> None:
    owner = await started.make(ConfigMap, "owner")
    await started.make(Secret, "child", metadata=owned_by(owner))
    await started.settle()
    await started.client.delete(ConfigMap, "owner", "ns", propagation="Orphan")
    assert await started.names(ConfigMap, "ns") == ["owner"]
    await started.settle()
    assert await started.names(ConfigMap, "ns") == []
    assert (await started.client.get(Secret, "child", "ns")).metadata.owner_references == []


async def test_in_the_foreground_the_owner_goes_last(started: Any) -> None:
    owner = await started.make(ConfigMap, "owner")
    held = {**owned_by(owner, blocking=True), "finalizers": ["x.io/held"]}
    await started.make(Secret, "child", metadata=held)
    await started.settle()
    await started.client.delete(ConfigMap, "owner", "ns", propagation="Foreground")
    await started.settle()
    child = await started.client.get(Secret, "child", "ns")
    assert child.metadata.deletion_timestamp
    assert await started.names(ConfigMap, "ns") == ["owner"]
    await started.client.patch(Secret, "child", "ns", {"metadata": {"finalizers": None}})
    await started.settle()
    assert await started.names(Secret, "ns") == []
    assert await started.names(ConfigMap, "ns") == []
