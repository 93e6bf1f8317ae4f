"""What is used stays until nobody uses it, and then goes at once (`kubectl delete pvc` ends)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.namespaces import Namespaces
from podling.controllers.protection import AttributesClassProtection, ClaimProtection, VolumeProtection
from podling.model.errors import StatusError
from podling.model.types.core import Namespace
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import VolumeAttributesClass

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

CLAIM: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME: dict[str, Any] = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "csi": {"driver": "a.test", "volumeHandle": "v"},
}
CONTAINERS = [{"name": "c", "image": "i"}]
OF_CLAIM = {"persistentVolumeClaim": {"claimName": "data"}}
OF_ITS_OWN = {"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    informers = cluster.informers
    pods, claims = informers.of(Pod), informers.of(PersistentVolumeClaim)
    volumes, classes = informers.of(PersistentVolume), informers.of(VolumeAttributesClass)
    await cluster.run(
        ClaimProtection(cluster.account("pvc-protection-controller"), claims, pods),
        VolumeProtection(cluster.account("pv-protection-controller"), volumes),
        AttributesClassProtection(
            cluster.account("volumeattributesclass-protection-controller"), classes, claims, volumes
        ),
        Namespaces(
            cluster.account("namespace-controller"), informers.of(Namespace), pods, claims, cluster.clock
        ),
    )
    return cluster


async def test_what_nobody_uses_goes_at_once(started: Cluster) -> None:
    await started.make(PersistentVolumeClaim, "data", spec=CLAIM)
    await started.make(PersistentVolume, "disk", "", spec=VOLUME)
    await started.make(VolumeAttributesClass, "fast", "", driverName="a.test", parameters={"a": "b"})
    await started.client.delete(PersistentVolumeClaim, "data", "ns")
    await started.client.delete(PersistentVolume, "disk")
    await started.client.delete(VolumeAttributesClass, "fast")
    await started.settle()
    for type_ in (PersistentVolumeClaim, PersistentVolume, VolumeAttributesClass):
        assert (await started.client.list(type_)).items == []


@pytest.mark.parametrize(("pod", "volume", "claim"), [("p", OF_CLAIM, "data"), ("p", OF_ITS_OWN, "p-v")])
async def test_a_claim_stays_while_a_scheduled_pod_has_it(
    started: Cluster, pod: str, volume: dict[str, Any], claim: str
) -> None:
    await started.make(PersistentVolumeClaim, claim, spec=CLAIM)
    spec = {"containers": CONTAINERS, "volumes": [{"name": "v", **volume}]}
    await started.make(Pod, "waits", spec=spec)
    await started.make(Pod, pod, spec={**spec, "nodeName": "n"})
    await started.client.delete(PersistentVolumeClaim, claim, "ns")
    await started.settle()
    assert await started.names(PersistentVolumeClaim, "ns") == [claim]
    await started.client.delete(Pod, pod, "ns", grace_seconds=0)
    await started.settle()
    assert await started.names(PersistentVolumeClaim, "ns") == []


async def test_a_volume_stays_while_it_is_bound(started: Cluster) -> None:
    await started.make(PersistentVolume, "disk", "", spec=VOLUME)
    bound = {"status": {"phase": "Bound"}}
    await started.client.patch(PersistentVolume, "disk", "", bound, subresource="status")
    await started.client.delete(PersistentVolume, "disk")
    await started.settle()
    assert (await started.client.get(PersistentVolume, "disk")).metadata.deletion_timestamp
    released = {"status": {"phase": "Released"}}
    await started.client.patch(PersistentVolume, "disk", "", released, subresource="status")
    await started.settle()
    assert (await started.client.list(PersistentVolume)).items == []


async def test_attributes_stay_while_a_claim_or_a_volume_has_them(started: Cluster) -> None:
    await started.make(VolumeAttributesClass, "fast", "", driverName="a.test", parameters={"a": "b"})
    await started.make(PersistentVolumeClaim, "data", spec={**CLAIM, "volumeAttributesClassName": "fast"})
    await started.make(PersistentVolume, "disk", "", spec={**VOLUME, "volumeAttributesClassName": "fast"})
    await started.client.delete(VolumeAttributesClass, "fast")
    for user, namespace in ((PersistentVolumeClaim, "ns"), (PersistentVolume, "")):
        await started.settle()
        assert (await started.client.get(VolumeAttributesClass, "fast")).metadata.deletion_timestamp
        await started.client.delete(user, "data" if namespace else "disk", namespace)
    await started.settle()
    with pytest.raises(StatusError) as gone:
        await started.client.get(VolumeAttributesClass, "fast")
    assert gone.value.code == 404


async def test_one_without_its_finalizer_gets_it(started: Cluster) -> None:
    await started.make(PersistentVolumeClaim, "data", spec=CLAIM)
    await started.client.patch(PersistentVolumeClaim, "data", "ns", {"metadata": {"finalizers": None}})
    await started.settle()
    found = await started.client.get(PersistentVolumeClaim, "data", "ns")
    assert found.metadata.finalizers == [ClaimProtection.finalizer]


async def test_a_namespace_with_a_claim_goes(started: Cluster) -> None:
    await started.make(PersistentVolumeClaim, "data", spec=CLAIM)
    await started.client.delete(Namespace, "ns")
    await started.settle()
    with pytest.raises(StatusError):
        await started.client.get(Namespace, "ns")
