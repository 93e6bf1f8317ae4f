"""Volumes of directories: made once, removed once, and no file that is not theirs is touched."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.protection import ClaimProtection, VolumeProtection
from podling.controllers.storage.binder import VolumeBinder
from podling.kubelet.volumes.directories import CLASS, FINALIZER, PROVISIONER, DirectoryProvisioner
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import StorageClass

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

NODE = "here"
CHOSEN = {"annotations": {"volume.kubernetes.io/selected-node": NODE}}
CLAIM: dict[str, Any] = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": CLASS,
}
ELSE = "pvc-00000000-0000-0000-0000-000000000000"


class Limits:
    """Of a file system that has them, or (None) of one that has not."""

    def __init__(self, set_: dict[str, int] | None = None) -> None:
        self.set = set_

    def limit(self, place: Path, size: int) -> bool:
        assert place.is_dir()
        if self.set is not None:
            self.set[place.name.removeprefix(".")] = size
        return self.set is not None

    def free(self, place: Path) -> None:
        if self.set is not None:
            self.set.pop(place.name.removeprefix("."), None)


async def run(cluster: Cluster, root: Path, limits: Limits | None = None) -> DirectoryProvisioner:
    informers = cluster.informers
    claims, volumes = informers.of(PersistentVolumeClaim), informers.of(PersistentVolume)
    classes, pods = informers.of(StorageClass), informers.of(Pod)
    made = DirectoryProvisioner(
        cluster.account("directory-provisioner"), informers, cluster.events, root, NODE, limits or Limits()
    )
    binder = cluster.account("persistent-volume-binder")
    await cluster.run(
        made,
        VolumeBinder(binder, claims, volumes, classes, pods, cluster.events),
        ClaimProtection(cluster.account("pvc-protection-controller"), claims, pods),
        VolumeProtection(cluster.account("pv-protection-controller"), volumes),
    )
    return made


async def bound(cluster: Cluster, root: Path, name: str = "c") -> Path:
    """A claim with its volume; where this is."""
    claim = await cluster.make(PersistentVolumeClaim, name, metadata=CHOSEN, spec=CLAIM)
    await cluster.settle()
    assert (await cluster.client.get(PersistentVolumeClaim, name, "ns")).status.phase == "Bound"
    return root / f"pvc-{claim.metadata.uid}"


async def test_a_directory_lives_as_long_as_its_claim(cluster: Cluster, tmp_path: Path) -> None:
    root = tmp_path / "volumes"
    await run(cluster, root)
    (only,) = (await cluster.client.list(StorageClass)).items
    assert only.metadata.annotations == {"storageclass.kubernetes.io/is-default-class": "true"}
    place = await bound(cluster, root)
    assert stat.S_IMODE(place.stat().st_mode) == 0o777 and stat.S_IMODE(root.stat().st_mode) == 0o700
    volume = await cluster.client.get(PersistentVolume, place.name, "")
    assert set(volume.metadata.finalizers) == {"kubernetes.io/pv-protection", FINALIZER}
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    (place / "link").symlink_to(outside)
    (place / "a" / "b").mkdir(parents=True)
    await cluster.client.delete(PersistentVolumeClaim, "c", "ns")
    await cluster.settle()
    assert not place.exists() and (outside / "file").exists()
    assert (await cluster.client.list(PersistentVolume)).items == []


@pytest.mark.parametrize("volume_first", [False, True])
async def test_a_claim_may_grow(cluster: Cluster, tmp_path: Path, volume_first: bool) -> None:
    """Also where a kill came between the two writes."""
    root = tmp_path / "volumes"
    limits = Limits({})
    await run(cluster, root, limits)
    place = await bound(cluster, root)
    assert limits.set == {place.name: 1 << 30}
    if volume_first:
        # The limit is set before either.
        limits.limit(place, 3 << 30)
        body = {"spec": {"capacity": {"storage": "3Gi"}}}
        await cluster.client.patch(PersistentVolume, place.name, "", body)
    more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    await cluster.client.patch(PersistentVolumeClaim, "c", "ns", more)
    await cluster.settle()
    claim = await cluster.client.get(PersistentVolumeClaim, "c", "ns")
    volume = await cluster.client.get(PersistentVolume, place.name, "")
    assert str(claim.status.capacity["storage"]) == str(volume.spec.capacity["storage"]) == "3Gi"
    assert cluster.events.said.count("VolumeResizeSuccessful: Resize volume succeeded") == 1
    assert limits.set == {place.name: 3 << 30}
    assert not [one for one in cluster.events.said if "SizeNotEnforced" in one]
    await cluster.client.delete(PersistentVolumeClaim, "c", "ns")
    await cluster.settle()
    assert limits.set == {} and not place.exists()


async def test_a_size_that_nothing_keeps_is_said_once(cluster: Cluster, tmp_path: Path) -> None:
    await run(cluster, tmp_path / "volumes")
    place = await bound(cluster, tmp_path / "volumes")
    more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    await cluster.client.patch(PersistentVolumeClaim, "c", "ns", more)
    await cluster.settle()
    assert [one for one in cluster.events.said if "SizeNotEnforced" in one] == [
        f"SizeNotEnforced: {place.name} is a directory on a file system without project quotas: nothing "
        "keeps it from growing beyond the 1Gi that were asked for"
    ]


async def test_what_a_kill_left_is_taken_up(cluster: Cluster, tmp_path: Path) -> None:
    """A directory whose volume was not made yet is used; one whose claim is gone since is removed, unless
    something is in it."""
    root = tmp_path / "volumes"
    root.mkdir()
    claim = await cluster.make(PersistentVolumeClaim, "c", metadata=CHOSEN, spec=CLAIM)
    begun = root / f"pvc-{claim.metadata.uid}"
    full, foreign = root / ELSE.replace("0", "1"), root / "pvc-mine"
    fresh = root / f".{ELSE.replace('0', '2')}"
    limits = Limits({place.name.removeprefix("."): 1 for place in (begun, root / ELSE, full, fresh)})
    for place in (begun, root / ELSE, full, foreign, fresh):
        place.mkdir()
    (full / "file").write_text("x")
    await run(cluster, root, limits)
    assert limits.set == {begun.name: 1 << 30, full.name: 1}
    assert (await cluster.client.get(PersistentVolumeClaim, "c", "ns")).status.phase == "Bound"
    assert sorted(root.iterdir()) == sorted((begun, full, foreign))


async def test_a_directory_that_is_gone_already_holds_up_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """A kill came between the removal and the volume's deletion."""
    root = tmp_path / "volumes"
    await run(cluster, root)
    place = await bound(cluster, root)
    place.rmdir()
    await cluster.client.delete(PersistentVolumeClaim, "c", "ns")
    await cluster.settle()
    assert (await cluster.client.list(PersistentVolume)).items == []


async def test_a_volume_that_is_deleted_first_waits_for_its_claim(cluster: Cluster, tmp_path: Path) -> None:
    root = tmp_path / "volumes"
    await run(cluster, root)
    place = await bound(cluster, root)
    await cluster.client.delete(PersistentVolume, place.name)
    await cluster.settle()
    assert place.exists()
    await cluster.client.delete(PersistentVolumeClaim, "c", "ns")
    await cluster.settle()
    assert not place.exists() and (await cluster.client.list(PersistentVolume)).items == []


@pytest.mark.parametrize("retained", [False, True])
async def test_only_its_own_directory_is_removed(cluster: Cluster, tmp_path: Path, retained: bool) -> None:
    """Whatever a volume says of its path, its maker or its policy."""
    root, outside = tmp_path / "volumes", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    await run(cluster, root)
    place = await bound(cluster, root)
    if retained:
        body = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
        await cluster.client.patch(PersistentVolume, place.name, "", body)
    else:
        place.rmdir()
        place.symlink_to(outside)
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "local": {"path": str(outside)},
        "claimRef": {"namespace": "ns", "name": "nobody", "uid": "x"},
        "persistentVolumeReclaimPolicy": "Delete",
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
                        ]
                    }
                ]
            }
        },
    }
    mark = {"annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}}
    for name in (ELSE, "volumes"):
        await cluster.make(PersistentVolume, name, "", metadata=mark, spec=spec)
    await cluster.client.delete(PersistentVolumeClaim, "c", "ns")
    if retained:
        await cluster.settle()
        assert place.is_dir()
    else:
        with pytest.raises(OSError, match=place.name):
            await cluster.settle()
    assert (outside / "file").exists()


async def test_what_a_directory_cannot_be_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    await run(cluster, tmp_path / "volumes")
    asked: dict[str, dict[str, Any]] = {
        "block": {"volumeMode": "Block"},
        "chosen": {"selector": {"matchLabels": {"a": "b"}}},
        "copied": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "c"}},
    }
    for name, spec in asked.items():
        await cluster.make(PersistentVolumeClaim, name, metadata=CHOSEN, spec={**CLAIM, **spec})
    await cluster.settle()
    assert list((tmp_path / "volumes").iterdir()) == []
    claims = (await cluster.client.list(PersistentVolumeClaim)).items
    # So that the scheduler does not wait for them.
    assert not any("volume.kubernetes.io/selected-node" in one.metadata.annotations for one in claims)
    refused = f'ProvisioningFailed: failed to provision volume with StorageClass "{CLASS}": '
    assert [one.removeprefix(refused) for one in cluster.events.said if one.startswith(refused)] == [
        "a directory is no block device",
        "claim Selector is not supported",
        "a directory cannot be made of other data",
    ]


async def test_other_nodes_and_classes_are_left_to_others(cluster: Cluster, tmp_path: Path) -> None:
    await run(cluster, tmp_path / "volumes")
    elsewhere = {"annotations": {"volume.kubernetes.io/selected-node": "there"}}
    await cluster.make(PersistentVolumeClaim, "there", metadata=elsewhere, spec=CLAIM)
    await cluster.make(PersistentVolumeClaim, "unplaced", spec=CLAIM)
    await cluster.make(StorageClass, "other", "", provisioner="a.test/b")
    spec = {**CLAIM, "storageClassName": "other"}
    await cluster.make(PersistentVolumeClaim, "others", metadata=CHOSEN, spec=spec)
    await cluster.settle()
    assert list((tmp_path / "volumes").iterdir()) == []


async def test_another_default_class_stays_the_default(cluster: Cluster, tmp_path: Path) -> None:
    usual = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    await cluster.make(StorageClass, "usual", "", metadata=usual, provisioner="a.test/b")
    await run(cluster, tmp_path / "volumes")
    ours = await cluster.client.get(StorageClass, CLASS, "")
    assert ours.metadata.annotations == {}
