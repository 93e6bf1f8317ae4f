"""CSI volumes are mounted into pods and given back, with a driver that speaks real gRPC and mounts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from csi_driver import CsiDriver
from podling.kubelet.config import KubeletConfig
from podling.kubelet.csi.registration import CsiDrivers
from podling.kubelet.host.disk import VolumeUse
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.volumes.csi import CsiVolume, of_persistent_volume, of_pod
from podling.kubelet.volumes.csi_mounts import CsiMounts
from podling.kubelet.volumes.csi_records import records_of
from podling.kubelet.volumes.files import VolumeError
from podling.model.codec.json import from_data
from podling.model.rules.attachments import attachment_name, unique_name
from podling.model.types.core import Namespace, Secret
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriver, CSITokenRequest, VolumeAttachment
from podling.process.mounts import mounts_under, unmount_under

if TYPE_CHECKING:
    from unit.kubelet.conftest import Clients

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
STEPS = "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"


class Recorder:
    def __init__(self) -> None:
        self.said: list[str] = []

    def normal(self, obj: KubeObject, reason: str, message: str, *, field_path: str = "") -> None:
        self.said.append(f"{obj.KIND} {reason}: {message}")

    warning = normal


class Told:
    """What the node has said of the volumes that it has; it is written at once."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def tell_in_use(self, names: Sequence[str]) -> None:
        self.names = list(names)


class NodeOne:
    """The CSI volumes of one kubelet after the other, and its driver."""

    def __init__(self, clients: Clients, root: Path) -> None:
        self.client, self.root = clients
        self.place = root
        self.config = KubeletConfig("n1", root / "kubelet", root / "logs")
        self.driver = CsiDriver("d.test", root / "driver")
        self.events, self.told = Recorder(), Told()
        self.begin()

    def begin(self) -> None:
        """A kubelet that knows what is on disk and nothing else."""
        self.drivers = CsiDrivers(self.client, self.config.plugin_registry, "n1")
        events: Any = self.events
        self.mounts = CsiMounts(self.client, self.drivers, events, self.config, self.told)
        self.mounts.load()

    def pod(self, uid: str, **spec: Any) -> Pod:
        return from_data({"metadata": {"name": uid, "namespace": "ns", "uid": uid}, "spec": spec}, Pod)

    def directory(self, pod: Pod) -> PodDirectory:
        return PodDirectory.of(pod, self.config)

    async def mount(self, pod: Pod, volume: CsiVolume) -> Path:
        return await self.mounts.mount(pod, self.directory(pod), volume, no_tokens)

    async def give_back(self, pod: Pod) -> None:
        await self.mounts.give_back(self.directory(pod))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        registered = asyncio.Event()
        self.drivers.follow(registered.set)
        with self.driver.serving(self.config.plugin_registry):
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(self.drivers.run())
                async with asyncio.timeout(20):
                    await registered.wait()
                yield
                running.cancel()

    def volume(self, handle: str = "v1", **spec: Any) -> CsiVolume:
        (self.driver.root / "volumes" / handle).mkdir(exist_ok=True)
        source = {"driver": "d.test", "volumeHandle": handle, **spec.pop("csi", {})}
        meta = {"name": f"pv-{handle}"}
        made = {"metadata": meta, "spec": {"csi": source, "accessModes": ["ReadWriteOnce"], **spec}}
        return of_persistent_volume(from_data(made, PersistentVolume), read_only=False)


async def no_tokens(requests: Sequence[CSITokenRequest]) -> str:
    return ""


@pytest.fixture
async def node(clients: Clients) -> AsyncIterator[NodeOne]:
    # A socket has no longer path than 107 characters.
    with TemporaryDirectory(prefix="csi-") as place:
        made = NodeOne(clients, Path(place))
        await made.root.create(Namespace(metadata=ObjectMeta(name="ns")))
        await made.root.create(driver_object())
        try:
            yield made
        finally:
            unmount_under(Path(place))


def driver_object(**spec: Any) -> CSIDriver:
    made = {"metadata": {"name": "d.test"}, "spec": {"attachRequired": False, **spec}}
    return from_data(made, CSIDriver)


async def exchange_driver(node: NodeOne, **spec: Any) -> None:
    await node.root.delete(CSIDriver, "d.test")
    await node.root.create(driver_object(**spec))


async def test_a_volume_is_staged_once_for_all_pods_of_the_node(node: NodeOne) -> None:
    volume, (one, two) = node.volume(), (node.pod("p1"), node.pod("p2"))
    async with node.serving():
        first, second = await asyncio.gather(node.mount(one, volume), node.mount(two, volume))
        (first / "file").write_text("kept")
        assert (second / "file").read_text() == "kept"
        assert node.driver.methods(*STEPS).count("NodeStageVolume") == 2
        await node.give_back(one)
        assert "NodeUnstageVolume" not in node.driver.methods() and (second / "file").exists()
        await node.give_back(two)
        assert node.driver.methods(*STEPS)[-2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
        assert (node.driver.root / "volumes/v1/file").read_text() == "kept"
        assert mounts_under(node.config.root_dir) == []
        assert os.listdir(node.config.csi_dir / "d.test") == []
        assert not list(records_of(node.directory(one)))


async def test_what_is_cut_short_is_given_back_by_the_next_kubelet(node: NodeOne) -> None:
    volume, pod = node.volume(), node.pod("p1")
    node.driver.set(refuses={"NodePublishVolume": "busy"})
    async with node.serving():
        with pytest.raises(VolumeError) as raised:
            await node.mount(pod, volume)
        why = 'MountVolume.SetUp failed for volume "pv-v1" : rpc error: code = Internal desc = busy'
        assert str(raised.value) == why
    with pytest.raises(VolumeError, match="Unavailable"):
        await node.give_back(pod)
    assert mounts_under(node.config.root_dir)
    node.begin()
    with pytest.raises(VolumeError, match=r"d\.test not found in the list of registered CSI drivers"):
        await node.give_back(pod)
    async with asyncio.TaskGroup() as tasks:
        clearing = tasks.create_task(node.mounts.clear("p1"))
        async with node.serving(), asyncio.timeout(20):
            await clearing
        assert mounts_under(node.config.root_dir) == []
        assert not node.directory(pod).path.exists()
        assert node.driver.methods(*STEPS)[-2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]


async def test_what_a_driver_leaves_mounted_is_not_removed(node: NodeOne) -> None:
    volume, pod = node.volume(), node.pod("p1")
    async with node.serving():
        place = await node.mount(pod, volume)
        (place / "file").write_text("kept")
        node.driver.set(leaves=True)
        with pytest.raises(OSError, match="something is mounted there"):
            await node.give_back(pod)
        assert (place / "file").read_text() == "kept"
        node.driver.set(leaves=False)
        await node.give_back(pod)
    assert (node.driver.root / "volumes/v1/file").read_text() == "kept"


async def test_the_driver_is_told_how_the_volume_is_used(node: NodeOne) -> None:
    await node.root.create(
        from_data({"metadata": {"name": "s", "namespace": "ns"}, "data": {"key": "dmFsdWU="}}, Secret)
    )
    secret = {"name": "s", "namespace": "ns"}
    volume = node.volume(
        csi={
            "fsType": "ext4",
            "volumeAttributes": {"a": "b"},
            "nodeStageSecretRef": secret,
            "nodePublishSecretRef": secret,
        },
        mountOptions=["noatime"],
    )
    node.client = node.root
    node.begin()
    await exchange_driver(node, podInfoOnMount=True)
    async with node.serving():
        await node.mount(node.pod("p1", serviceAccountName="sa"), volume)
    (stage,), (publish,) = node.driver.calls("NodeStageVolume"), node.driver.calls("NodePublishVolume")
    how = {
        "mount": {"fs_type": "ext4", "mount_flags": ["noatime"]},
        "access_mode": {"mode": "SINGLE_NODE_WRITER"},
    }
    assert stage["volume_capability"] == publish["volume_capability"] == how
    assert stage["secrets"] == publish["secrets"] == {"key": "value"}
    assert stage["volume_context"] == {"a": "b"} and stage["volume_id"] == "v1"
    assert publish["volume_context"] | {"a": "b"} == publish["volume_context"]
    assert publish["volume_context"]["csi.storage.k8s.io/pod.uid"] == "p1"
    assert publish["staging_target_path"] == stage["staging_target_path"]


@pytest.mark.parametrize("delegated", [False, True])
async def test_files_go_to_the_group_of_the_pod(node: NodeOne, delegated: bool) -> None:
    volume = node.volume(csi={"fsType": "ext4"})
    (node.driver.root / "volumes/v1/file").touch(mode=0o600)
    if delegated:
        node.driver.set(can=["STAGE_UNSTAGE_VOLUME", "VOLUME_MOUNT_GROUP"])
    async with node.serving():
        place = await node.mount(node.pod("p1", securityContext={"fsGroup": 4242}), volume)
    (stage,) = node.driver.calls("NodeStageVolume")
    assert stage["volume_capability"]["mount"].get("volume_mount_group") == ("4242" if delegated else None)
    found = (place / "file").stat()
    assert (found.st_gid == 4242) is not delegated


async def test_a_volume_of_a_pod_is_neither_attached_nor_staged(node: NodeOne) -> None:
    pod = node.pod("p1", volumes=[{"name": "scratch", "csi": {"driver": "d.test"}}])
    volume = of_pod(pod, pod.spec.volumes[0])
    await exchange_driver(node, attachRequired=True, volumeLifecycleModes=["Ephemeral"])
    async with node.serving():
        place = await node.mount(pod, volume)
        assert mounts_under(place) and node.driver.methods(*STEPS) == ["NodePublishVolume"]
        await node.give_back(pod)
        assert node.driver.methods(*STEPS) == ["NodePublishVolume", "NodeUnpublishVolume"]
        assert not (node.driver.root / "volumes" / volume.handle).exists()


async def test_a_pod_waits_until_its_volume_is_attached(node: NodeOne) -> None:
    await node.root.delete(CSIDriver, "d.test")
    volume, pod = node.volume(), node.pod("p1")
    await node.root.create(
        from_data(
            {
                "metadata": {"name": "pv-v1"},
                "spec": {
                    "csi": {"driver": "d.test", "volumeHandle": "v1"},
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                },
            },
            PersistentVolume,
        )
    )
    async with node.serving(), asyncio.TaskGroup() as tasks:
        mounting = tasks.create_task(node.mount(pod, volume))
        attachment, name = attachment_name("d.test", "v1", "n1"), unique_name("d.test", "v1")
        made = {
            "metadata": {"name": attachment},
            "spec": {"attacher": "d.test", "nodeName": "n1", "source": {"persistentVolumeName": "pv-v1"}},
        }
        await node.root.create(from_data(made, VolumeAttachment))
        done = {"status": {"attached": True, "attachmentMetadata": {"disk": "sdb"}}}
        await node.root.patch(VolumeAttachment, attachment, "", done, subresource="status")
        assert not mounting.done() and "NodeStageVolume" not in node.driver.methods()
        attached = {"status": {"volumesAttached": [{"name": name, "devicePath": ""}]}}
        await node.root.patch(Node, "n1", "", attached, subresource="status")
        async with asyncio.timeout(20):
            await mounting
        assert node.told.names == [name]
        (stage,) = node.driver.calls("NodeStageVolume")
        assert stage["publish_context"] == {"disk": "sdb"}
        node.begin()
        assert node.mounts.load() == [name]
    async with node.serving():
        await node.give_back(pod)
        assert node.told.names == []


@pytest.mark.parametrize("abnormal", [None, False, True])
async def test_the_driver_says_what_is_used(node: NodeOne, abnormal: bool | None) -> None:
    """Once a minute; whether something is wrong with it only of one that says so."""
    volume, pod = node.volume(), node.pod("p1")
    if abnormal is not None:
        node.driver.set(can=["GET_VOLUME_STATS", "VOLUME_CONDITION"], abnormal=abnormal)
    async with node.serving():
        place = await node.mount(pod, volume)
        for _ in range(2):
            assert await node.mounts.use(volume, place) == VolumeUse(100, 59, 40, 100, 59, 40, abnormal)
        (request,) = node.driver.calls("NodeGetVolumeStats")
        assert request == {"volume_id": "v1", "volume_path": str(place)}


async def test_a_driver_need_not_say_it(node: NodeOne) -> None:
    volume, pod = node.volume(), node.pod("p1")
    node.driver.set(can=[])
    async with node.serving():
        place = await node.mount(pod, volume)
        assert await node.mounts.use(volume, place) is None
    assert node.driver.calls("NodeGetVolumeStats") == []


async def test_what_has_grown_is_grown_on_the_node(node: NodeOne) -> None:
    claim = {
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    }
    made = await node.root.create(from_data(claim, PersistentVolumeClaim))
    pending = [{"type": "FileSystemResizePending", "status": "True"}]
    status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "conditions": pending}}
    await node.root.patch(PersistentVolumeClaim, "c", "ns", status, subresource="status")
    ref = {"namespace": "ns", "name": "c", "uid": made.metadata.uid}
    volume = node.volume(capacity={"storage": "2Gi"}, claimRef=ref)
    node.client = node.root
    node.begin()
    pod = node.pod("p1")
    async with node.serving():
        place = await node.mount(pod, volume)
        (request,) = node.driver.calls("NodeExpandVolume")
        assert request["volume_path"] == str(place)
        assert request["capacity_range"] == {"required_bytes": str(2 << 30)}
        found = (await node.root.get(PersistentVolumeClaim, "c", "ns")).status
        assert str(found.capacity["storage"]) == "2Gi" and found.conditions == []
        told = 'FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv-v1" n1'
        assert node.events.said == [f"Pod {told}", f"PersistentVolumeClaim {told}"]
        await node.mounts.again(pod, node.directory(pod), volume, no_tokens)
        assert len(node.driver.calls("NodeExpandVolume")) == len(node.driver.calls("NodePublishVolume")) == 1
        await exchange_driver(node, requiresRepublish=True)
        await node.mounts.again(pod, node.directory(pod), volume, no_tokens)
        assert len(node.driver.calls("NodePublishVolume")) == 2
