"""Volumes are attached to the nodes of their pods, and detached only when no kubelet uses them.

That objects, names and events are those of Kubernetes is judged by tests/peer/test_attaching.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.client.client import Client
from podling.controllers.storage.attachment_plan import may_go
from podling.controllers.storage.attachments import LONGEST_UNMOUNT, Attachments
from podling.model.codec.json import from_data
from podling.model.rules.attachments import MANAGED, attachment_name, unique_name
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriver, VolumeAttachment

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

NAME = unique_name("d.test", "h")
ONCE = ["ReadWriteOnce"]


class Attaching:
    """Two nodes, and a volume of a driver that is bound to a claim."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def client(self) -> Client:
        return self.cluster.client

    async def begin(self, modes: list[str], *, required: bool = True) -> None:
        cluster = self.cluster
        await cluster.make(CSIDriver, "d.test", "", spec={"attachRequired": required})
        for name in ("n1", "n2"):
            await cluster.make(Node, name, "", metadata={"annotations": {MANAGED: "true"}})
        size = {"storage": "1Gi"}
        spec = {"accessModes": modes, "resources": {"requests": size}, "volumeName": "v"}
        done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        claim = await cluster.make(
            PersistentVolumeClaim, "c", spec=spec, metadata=done, status={"phase": "Bound"}
        )
        ref = {"namespace": "ns", "name": "c", "uid": claim.metadata.uid}
        source = {"driver": "d.test", "volumeHandle": "h"}
        volume = {"csi": source, "capacity": size, "accessModes": modes, "claimRef": ref}
        await cluster.make(PersistentVolume, "v", "", spec=volume)
        account = cluster.account("attachdetach-controller")
        controller = Attachments(account, cluster.informers, cluster.events, cluster.clock)
        await cluster.run(controller)

    async def pod(self, name: str, node: str) -> None:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
        await self.cluster.pod(name, node=node, spec={"volumes": [volume]})
        await self.cluster.settle()

    async def gone(self, name: str) -> None:
        await self.client.delete(Pod, name, "ns", grace_seconds=0)
        await self.cluster.settle()

    async def attached(self, node: str, **status: Any) -> None:
        """As its external-attacher says it."""
        name = attachment_name("d.test", "h", node)
        said = {"status": {"attached": True, **status}}
        await self.client.patch(VolumeAttachment, name, "", said, subresource="status")
        await self.cluster.settle()

    async def uses(self, node: str, *names: str, ready: str = "True") -> None:
        conditions = [{"type": "Ready", "status": ready}]
        said = {"status": {"volumesInUse": list(names), "conditions": conditions}}
        await self.client.patch(Node, node, "", said, subresource="status")
        await self.cluster.settle()

    async def told(self, node: str) -> list[str]:
        return [one.name for one in (await self.client.get(Node, node)).status.volumes_attached]

    async def nodes(self) -> list[str]:
        """To which it is being attached."""
        found = (await self.client.list(VolumeAttachment)).items
        assert all(one.spec.attacher == "d.test" for one in found)
        return sorted(one.spec.node_name for one in found)


@pytest.fixture
def attaching(cluster: Cluster) -> Attaching:
    return Attaching(cluster)


async def test_a_volume_is_attached_while_a_pod_or_a_kubelet_uses_it(attaching: Attaching) -> None:
    await attaching.begin(ONCE)
    await attaching.pod("p", "n1")
    assert await attaching.nodes() == ["n1"] and await attaching.told("n1") == []
    await attaching.attached("n1")
    assert await attaching.told("n1") == [NAME]
    assert attaching.cluster.events.said == [
        'SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "v" '
    ]
    await attaching.uses("n1", NAME)
    await attaching.gone("p")
    assert await attaching.nodes() == ["n1"] and await attaching.told("n1") == [NAME]
    await attaching.uses("n1")
    assert await attaching.nodes() == [] and await attaching.told("n1") == []


async def test_one_that_needs_no_attaching_is_left_alone(attaching: Attaching) -> None:
    await attaching.begin(ONCE, required=False)
    await attaching.pod("p", "n1")
    assert await attaching.nodes() == []


async def test_a_volume_for_one_node_waits_for_the_other_to_let_it_go(attaching: Attaching) -> None:
    await attaching.begin(ONCE)
    await attaching.pod("one", "n1")
    await attaching.attached("n1")
    await attaching.pod("two", "n2")
    assert await attaching.nodes() == ["n1"]
    said = 'FailedAttachVolume: Multi-Attach error for volume "v" Volume is already used by pod(s) one'
    assert attaching.cluster.events.said[-1] == said
    await attaching.gone("one")
    assert await attaching.nodes() == ["n2"]


async def test_a_volume_for_many_is_attached_to_all(attaching: Attaching) -> None:
    await attaching.begin(["ReadWriteMany"])
    await attaching.pod("one", "n1")
    await attaching.pod("two", "n2")
    assert await attaching.nodes() == ["n1", "n2"]


async def test_why_it_is_not_attached_is_said_once(attaching: Attaching) -> None:
    await attaching.begin(ONCE)
    await attaching.pod("p", "n1")
    why = {"attached": False, "attachError": {"message": "rpc error: code = Internal desc = no disk"}}
    await attaching.attached("n1", **why)
    await attaching.uses("n1")
    assert attaching.cluster.events.said == [
        'FailedAttachVolume: AttachVolume.Attach failed for volume "v" : rpc error: code = Internal desc = '
        "no disk"
    ]
    assert await attaching.told("n1") == []


async def test_what_a_kubelet_began_to_use_meanwhile_is_not_detached(attaching: Attaching) -> None:
    """It has said so, and the controller does not know yet."""
    await attaching.begin(ONCE)
    await attaching.pod("p", "n1")
    await attaching.attached("n1")
    await attaching.client.delete(Pod, "p", "ns", grace_seconds=0)
    await attaching.cluster.see()
    (controller,) = attaching.cluster._controllers
    said = {"status": {"volumesInUse": [NAME]}}
    reconciling = controller.reconcile("n1")
    await attaching.client.patch(Node, "n1", "", said, subresource="status")
    with pytest.raises(Exception, match="the object has been modified"):
        await reconciling
    assert await attaching.nodes() == ["n1"] and await attaching.told("n1") == [NAME]


async def test_a_node_that_is_gone_has_nothing(attaching: Attaching) -> None:
    await attaching.begin(ONCE)
    await attaching.pod("p", "n1")
    await attaching.attached("n1")
    await attaching.uses("n1", NAME)
    await attaching.client.delete(Node, "n1")
    await attaching.gone("p")
    assert await attaching.nodes() == []


async def test_a_node_that_is_not_healthy_is_waited_for_for_six_minutes(attaching: Attaching) -> None:
    await attaching.begin(ONCE)
    await attaching.pod("p", "n1")
    await attaching.attached("n1")
    await attaching.uses("n1", NAME, ready="Unknown")
    await attaching.gone("p")
    assert await attaching.nodes() == ["n1"]
    attaching.cluster.clock.move(LONGEST_UNMOUNT)
    await attaching.cluster.reconcile("n1")
    assert await attaching.nodes() == []


@pytest.mark.parametrize(
    ("node", "waited", "goes"),
    [
        (None, False, True),
        ({}, False, True),
        ({"status": {"volumesInUse": [NAME]}}, False, False),
        (
            {"status": {"volumesInUse": [NAME], "conditions": [{"type": "Ready", "status": "True"}]}},
            True,
            False,
        ),
        (
            {"status": {"volumesInUse": [NAME], "conditions": [{"type": "Ready", "status": "False"}]}},
            True,
            True,
        ),
        (
            {
                "spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]},
                "status": {"volumesInUse": [NAME]},
            },
            False,
            True,
        ),
    ],
)
def test_when_a_volume_may_go(node: dict[str, Any] | None, waited: bool, goes: bool) -> None:
    found = from_data(node, Node) if node is not None else None
    assert may_go(NAME, found, waited=waited) is goes
