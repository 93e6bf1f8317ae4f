"""Claims and volumes are bound whatever comes between: a kill, another who writes, another who wants it.

That they come to what Kubernetes makes of them is judged by tests/peer/test_volume_binding.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from podling.client.client import Client
from podling.controllers.storage.binder import BinderKey, VolumeBinder
from podling.controllers.storage.steps import ClaimStep, VolumeStep, step_of_claim, step_of_volume
from podling.model.codec.json import from_data
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import StorageClass

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

MODES = {"accessModes": ["ReadWriteOnce"]}
CLAIM: dict[str, Any] = {**MODES, "resources": {"requests": {"storage": "1Gi"}}}
VOLUME: dict[str, Any] = {
    **MODES,
    "capacity": {"storage": "1Gi"},
    "csi": {"driver": "a.test", "volumeHandle": "v"},
    "persistentVolumeReclaimPolicy": "Retain",
}
OURS = {"namespace": "ns", "name": "c", "uid": "u"}


class Killed(Exception):
    """The process has ended."""


class Dying:
    """A client whose process ends after so many writes."""

    def __init__(self, client: Client, writes: int) -> None:
        self._client, self._left = client, writes

    async def update(self, *given: Any, **named: Any) -> Any:
        if not self._left:
            raise Killed
        self._left -= 1
        return await self._client.update(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def binder(cluster: Cluster, writes: int | None = None) -> VolumeBinder:
    client: Any = cluster.account("persistent-volume-binder")
    informers = cluster.informers
    return VolumeBinder(
        client if writes is None else cast(Client, Dying(client, writes)),
        informers.of(PersistentVolumeClaim),
        informers.of(PersistentVolume),
        informers.of(StorageClass),
        informers.of(Pod),
        cluster.events,
    )


async def phases(cluster: Cluster) -> dict[str, str]:
    found: list[Any] = [
        *(await cluster.client.list(PersistentVolumeClaim)).items,
        *(await cluster.client.list(PersistentVolume)).items,
    ]
    return {one.metadata.name: one.status.phase for one in found}


@pytest.mark.parametrize("writes", range(5))
@pytest.mark.parametrize("named", ["neither", "volume", "claim"])
async def test_a_binder_goes_on_where_one_was_killed(cluster: Cluster, writes: int, named: str) -> None:
    of_volume = {"claimRef": {"namespace": "ns", "name": "c"}} if named == "volume" else {}
    of_claim = {"volumeName": "v"} if named == "claim" else {}
    await cluster.make(PersistentVolume, "v", "", spec={**VOLUME, **of_volume})
    await cluster.make(PersistentVolumeClaim, "c", spec={**CLAIM, **of_claim})
    dying = binder(cluster, writes)
    try:
        await cluster.run(dying)
    except Killed:
        cluster._controllers.clear()
        dying.queue.close()
        await cluster.run(binder(cluster))
    assert await phases(cluster) == {"c": "Bound", "v": "Bound"}
    claim = await cluster.client.get(PersistentVolumeClaim, "c", "ns")
    volume = await cluster.client.get(PersistentVolume, "v", "")
    assert volume.spec.claim_ref is not None
    assert (claim.spec.volume_name, volume.spec.claim_ref.uid) == ("v", claim.metadata.uid)


async def test_of_two_claims_one_gets_the_volume(cluster: Cluster) -> None:
    for name in ("c", "d"):
        await cluster.make(PersistentVolumeClaim, name, spec=CLAIM)
    await cluster.make(PersistentVolume, "v", "", spec=VOLUME)
    await cluster.run(binder(cluster))
    got = await phases(cluster)
    assert sorted([got["c"], got["d"]]) == ["Bound", "Pending"]


async def test_two_binders_give_a_volume_to_one_claim(cluster: Cluster) -> None:
    for name in ("c", "d"):
        await cluster.make(PersistentVolumeClaim, name, spec=CLAIM)
    await cluster.make(PersistentVolume, "v", "", spec=VOLUME)
    await cluster.run(binder(cluster), binder(cluster))
    got = await phases(cluster)
    assert sorted([got["c"], got["d"]]) == ["Bound", "Pending"]


async def test_many_claims_get_a_volume_each(cluster: Cluster) -> None:
    for number in range(20):
        await cluster.make(PersistentVolume, f"v{number}", "", spec=VOLUME)
        await cluster.make(PersistentVolumeClaim, f"c{number}", spec=CLAIM)
    await cluster.run(binder(cluster))
    assert set((await phases(cluster)).values()) == {"Bound"}
    volumes = (await cluster.client.list(PersistentVolume)).items
    assert len({one.spec.claim_ref.uid for one in volumes if one.spec.claim_ref}) == 20


async def test_a_claim_cannot_take_what_is_another_claims(cluster: Cluster) -> None:
    """Annotations are the tenant's to write: they give nothing that the volume does not say, too."""
    await cluster.make(PersistentVolume, "v", "", spec=VOLUME)
    await cluster.make(PersistentVolumeClaim, "c", spec=CLAIM)
    await cluster.run(binder(cluster))
    marks = {f"pv.kubernetes.io/{mark}": "yes" for mark in ("bind-completed", "bound-by-controller")}
    await cluster.make(
        PersistentVolumeClaim, "thief", metadata={"annotations": marks}, spec={**CLAIM, "volumeName": "v"}
    )
    marks = {"pv.kubernetes.io/bound-by-controller": "yes"}
    await cluster.make(
        PersistentVolumeClaim, "other", metadata={"annotations": marks}, spec={**CLAIM, "volumeName": "v"}
    )
    await cluster.settle()
    assert await phases(cluster) == {"c": "Bound", "v": "Bound", "thief": "Lost", "other": "Pending"}
    await cluster.reconcile(BinderKey("ns", "other"))
    volume = await cluster.client.get(PersistentVolume, "v", "")
    assert volume.spec.claim_ref is not None and volume.spec.claim_ref.name == "c"


async def test_no_volume_is_wiped_to_be_used_again(cluster: Cluster) -> None:
    """Kubernetes would, with a pod of its own: the policy has been deprecated for long."""
    spec = {**VOLUME, "csi": None, "nfs": {"server": "a", "path": "/"}}
    await cluster.make(PersistentVolume, "v", "", spec={**spec, "persistentVolumeReclaimPolicy": "Recycle"})
    await cluster.make(PersistentVolumeClaim, "c", spec=CLAIM)
    await cluster.run(binder(cluster))
    body = {"metadata": {"finalizers": None}}
    await cluster.client.patch(PersistentVolumeClaim, "c", "ns", body)
    await cluster.client.delete(PersistentVolumeClaim, "c", "ns")
    await cluster.settle()
    assert await phases(cluster) == {"v": "Failed"}
    assert cluster.events.said[-1] == "VolumeFailedRecycle: No recycler plugin found for the volume!"


@pytest.mark.parametrize(
    ("claim", "volume", "step"),
    [
        ({}, None, ClaimStep.FIND),
        ({"name": True}, None, ClaimStep.WAIT),
        ({"name": True}, {}, ClaimStep.BIND),
        ({"name": True}, {"capacity": {"storage": "1"}}, ClaimStep.UNFIT),
        ({"name": True}, {"claimRef": OURS}, ClaimStep.BIND),
        ({"name": True}, {"claimRef": {**OURS, "uid": ""}}, ClaimStep.BIND),
        ({"name": True}, {"claimRef": {**OURS, "uid": "x"}}, ClaimStep.TAKEN),
        ({"name": True, "chosen": True}, {"claimRef": {**OURS, "uid": "x"}}, ClaimStep.STOLEN),
        ({"done": True}, None, ClaimStep.LOST_REFERENCE),
        ({"done": True, "name": True}, None, ClaimStep.LOST_VOLUME),
        ({"done": True, "name": True}, {}, ClaimStep.BIND),
        ({"done": True, "name": True}, {"claimRef": OURS}, ClaimStep.BIND),
        ({"done": True, "name": True}, {"claimRef": {**OURS, "uid": ""}}, ClaimStep.MISBOUND),
        ({"done": True, "name": True}, {"claimRef": {**OURS, "uid": "x"}}, ClaimStep.MISBOUND),
    ],
)
def test_what_is_done_with_a_claim(
    claim: dict[str, bool], volume: dict[str, Any] | None, step: ClaimStep
) -> None:
    marks = {"done": "bind-completed", "chosen": "bound-by-controller"}
    annotations = {f"pv.kubernetes.io/{marks[key]}": "yes" for key in claim if key in marks}
    one = from_data(
        {
            "metadata": {"name": "c", "namespace": "ns", "uid": "u", "annotations": annotations},
            "spec": {**CLAIM, "volumeName": "v" if "name" in claim else ""},
        },
        PersistentVolumeClaim,
    )
    other = None if volume is None else from_data({"spec": {**VOLUME, **volume}}, PersistentVolume)
    assert step_of_claim(one, other) is step


@pytest.mark.parametrize(
    ("volume", "claim", "step"),
    [
        ({}, None, VolumeStep.OFFER),
        ({"claimRef": {**OURS, "uid": ""}}, {}, VolumeStep.OFFER),
        ({"claimRef": OURS}, None, VolumeStep.RELEASE),
        ({"claimRef": OURS}, {}, VolumeStep.AWAIT),
        ({"claimRef": OURS}, {"volumeMode": "Block"}, VolumeStep.UNLIKE),
        ({"claimRef": OURS}, {"volumeName": "v"}, VolumeStep.KEEP),
        ({"claimRef": OURS}, {"volumeName": "w"}, VolumeStep.FREE),
        (
            {"claimRef": OURS, "persistentVolumeReclaimPolicy": "Delete"},
            {"volumeName": "w"},
            VolumeStep.DISCARD,
        ),
    ],
)
def test_what_is_done_with_a_volume(
    volume: dict[str, Any], claim: dict[str, Any] | None, step: VolumeStep
) -> None:
    made = {"annotations": {"pv.kubernetes.io/provisioned-by": "a.test"}, "name": "v"}
    one = from_data({"metadata": made, "spec": {**VOLUME, **volume}}, PersistentVolume)
    other = None if claim is None else from_data({"spec": {**CLAIM, **claim}}, PersistentVolumeClaim)
    assert step_of_volume(one, other) is step
