"""Attaches volumes of CSI drivers to the nodes of their pods, and detaches them, as Kubernetes' attach-detach
controller: by VolumeAttachments, on which the driver's external-attacher acts.

    pod on a node ──▶ VolumeAttachment ──▶ status.attached ──▶ Node.status.volumesAttached ──▶ kubelet mounts
    pod is gone   ──▶ not in volumesInUse ──▶ not in volumesAttached ──▶ VolumeAttachment deleted

A kubelet says that it uses a volume before it asks whether it is attached. A volume leaves `volumesAttached`
in a write with the version of the Node in which nobody used it, so nobody begins to use what is detached.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Groups, Informers
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import gone_is_done
from podling.controllers.storage.attachment_plan import (
    Wanted,
    may_go,
    unique_name_of,
    wanted_by,
    why_elsewhere,
)
from podling.controllers.storage.claimers import Claimers
from podling.model.errors import StatusError
from podling.model.rules.attachments import MANAGED, attachment_name
from podling.model.rules.references import volume_claims_of
from podling.model.time import Clock
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import AttachedVolume, Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import (
    CSIDriver,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)

ATTACHER = "attachdetach-controller"
"""Who tells the events."""
LONGEST_UNMOUNT = 360.0
"""Seconds after which a volume is detached from a node that is not healthy, though it says to use it."""


class Attachments:
    name = "attachdetach-controller"

    def __init__(self, client: Client, informers: Informers, events: EventRecorder, clock: Clock) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        """Names of nodes."""
        self._client, self._events, self._clock = client, events, clock
        pods = informers.of(Pod)
        self._nodes = informers.of(Node)
        self._claims = informers.of(PersistentVolumeClaim)
        self._volumes = informers.of(PersistentVolume)
        self._drivers = informers.of(CSIDriver)
        attachments = informers.of(VolumeAttachment)
        self._pods: Groups[Pod] = Groups(pods, lambda pod: pod.spec.node_name or None)
        self._of_node: Groups[VolumeAttachment] = Groups(attachments, lambda one: one.spec.node_name)
        self._of_volume: Groups[VolumeAttachment] = Groups(attachments, volume_of)
        self._claimers = Claimers(pods)
        self._unwanted: dict[tuple[str, str], float] = {}
        """Node and attachment, and since when no pod needs it that its node still uses."""
        self._failed: dict[str, str] = {}
        """What was said last of each attachment, or of a volume that waits for one."""
        pods.subscribe(self._pod_changed)
        self._claims.subscribe(self._claim_changed)
        self._volumes.subscribe(self._volume_changed)
        self._nodes.subscribe(self._node_changed)
        self._drivers.subscribe(self._driver_changed)
        attachments.subscribe(self._attachment_changed)

    async def reconcile(self, key: str) -> None:
        node = self._nodes.get("", key)
        if node is not None and node.metadata.annotations.get(MANAGED) != "true":
            return
        wanted = wanted_by(self._pods.of(key), self._claims.get, self._volumes.get, self._drivers.get)
        there = {one.metadata.name: one for one in self._of_node.of(key)}
        attached = set()
        for one in wanted.values():
            name = _attachment_name(one.volume, key)
            self._unwanted.pop((key, name), None)
            found = there.pop(name, None)
            if found is None:
                await self._attach(one, name, key)
            elif found.status.attached and not found.metadata.deletion_timestamp:
                attached.add(one.unique_name)
            elif found.status.attach_error is not None:
                self._say_failed(one, name, found.status.attach_error.message)
        leaving = [extra for extra in there.values() if self._leaves(extra, node)]
        for extra in there.values():
            volume = self._volumes.get("", volume_of(extra) or "")
            is_kept = extra not in leaving and not extra.metadata.deletion_timestamp and extra.status.attached
            if is_kept and volume is not None and volume.spec.csi is not None:
                # Its kubelet still uses it.
                attached.add(unique_name_of(volume))
        # Also without a change, to be refused if the node has begun to use what leaves.
        if node is not None and (leaving or attached != {one.name for one in node.status.volumes_attached}):
            await self._tell(node, attached, wanted.values())
        for extra in leaving:
            with gone_is_done():
                await self._client.delete(VolumeAttachment, extra.metadata.name, uid=extra.metadata.uid)
            self._failed.pop(extra.metadata.name, None)

    async def _attach(self, one: Wanted, name: str, node: str) -> None:
        volume, ref = one.volume, one.volume.spec.claim_ref
        users = self._claimers.of(ref.namespace, ref.name) if ref is not None else ()
        if why := why_elsewhere(one, node, self._of_volume.of(volume.metadata.name), users):
            if self._failed.get(name) != why:
                self._failed[name] = why
                for pod in one.pods:
                    self._events.warning(pod, "FailedAttachVolume", why)
            return
        source = volume.spec.csi
        assert source is not None
        spec = VolumeAttachmentSpec(
            attacher=source.driver,
            node_name=node,
            source=VolumeAttachmentSource(persistent_volume_name=volume.metadata.name),
        )
        try:
            await self._client.create(VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec))
        except StatusError as error:
            # The informer will show it.
            if error.reason != "AlreadyExists":
                raise

    def _leaves(self, one: VolumeAttachment, node: Node | None) -> bool:
        """Whether an attachment that no pod of the node needs is to be deleted now."""
        volume = self._volumes.get("", volume_of(one) or "")
        name, key = one.metadata.name, one.spec.node_name
        # Others may make attachments, too, which have other names.
        if volume is None or volume.spec.csi is None or name != _attachment_name(volume, key):
            return False
        if one.metadata.deletion_timestamp:
            return False
        now = self._clock.now().timestamp()
        waited = now - self._unwanted.setdefault((key, name), now)
        if may_go(unique_name_of(volume), node, waited=waited >= LONGEST_UNMOUNT):
            del self._unwanted[key, name]
            return True
        self.queue.add_after(key, max(LONGEST_UNMOUNT - waited, 1.0))
        return False

    async def _tell(self, node: Node, attached: set[str], wanted: Iterable[Wanted]) -> None:
        """Raises StatusError, with 409 if the node has said something meanwhile."""
        known = {one.name for one in node.status.volumes_attached}
        told = [AttachedVolume(name=name) for name in sorted(attached)]
        await self._client.update(
            replace(node, status=replace(node.status, volumes_attached=told)), subresource="status"
        )
        for one in wanted:
            if one.unique_name in attached - known:
                self._failed.pop(_attachment_name(one.volume, node.metadata.name), None)
                for pod in one.pods:
                    volume = one.volume.metadata.name
                    told_pod = f'AttachVolume.Attach succeeded for volume "{volume}" '
                    self._events.normal(pod, "SuccessfulAttachVolume", told_pod)

    def _say_failed(self, one: Wanted, name: str, message: str) -> None:
        why = f'AttachVolume.Attach failed for volume "{one.volume.metadata.name}" : {message}'
        if self._failed.get(name) != why:
            self._failed[name] = why
            for pod in one.pods:
                self._events.warning(pod, "FailedAttachVolume", why)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is not None and pod.spec.node_name and any(volume_claims_of(pod)):
                self.queue.add(pod.spec.node_name)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        one = new or old
        if one is not None and (old is None or new is None or old.spec != new.spec):
            self._wake_users(one.metadata.namespace, one.metadata.name)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        one = new or old
        if one is not None and one.spec.csi is not None and one.spec.claim_ref is not None:
            self._wake_users(one.spec.claim_ref.namespace, one.spec.claim_ref.name)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        one = new or old
        assert one is not None
        if old is None or new is None or _facts(old) != _facts(new):
            self.queue.add(one.metadata.name)

    def _driver_changed(self, old: CSIDriver | None, new: CSIDriver | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            for node in self._nodes.items():
                self.queue.add(node.metadata.name)

    def _attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        one = new or old
        assert one is not None
        self.queue.add(one.spec.node_name)
        if new is None:
            self._unwanted.pop((one.spec.node_name, one.metadata.name), None)
            # Another node may wait for it.
            self._volume_changed(None, self._volumes.get("", volume_of(one) or ""))

    def _wake_users(self, namespace: str, claim: str) -> None:
        for pod in self._claimers.of(namespace, claim):
            if pod.spec.node_name:
                self.queue.add(pod.spec.node_name)


def volume_of(one: VolumeAttachment) -> str | None:
    return one.spec.source.persistent_volume_name


def _attachment_name(volume: PersistentVolume, node: str) -> str:
    source = volume.spec.csi
    assert source is not None
    return attachment_name(source.driver, source.volume_handle, node)


def _facts(node: Node) -> object:
    """What of a node decides about its volumes."""
    status = node.status
    ready = [one.status for one in status.conditions if one.type == "Ready"]
    attached = [one.name for one in status.volumes_attached]
    return status.volumes_in_use, attached, node.spec.taints, node.metadata.annotations.get(MANAGED), ready
