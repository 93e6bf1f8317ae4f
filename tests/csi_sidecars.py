"""What the sidecars of a CSI driver do, for tests: external-provisioner, external-attacher, external-resizer.

    python csi_sidecars.py KUBECONFIG SOCKET     acts until it is killed

They know of a cluster what they read at its API server, and ask the driver's controller service by gRPC.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import grpc
from msgspec.structs import replace

import podling.cri.grpc  # noqa: F401  it says how gRPC is to be loaded
from csi_driver import CONTROLLER, IDENTITY, controller_pb
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.informer import Informers
from podling.client.workqueue import WorkQueue, work
from podling.kubelet.csi import csi_pb2
from podling.model.errors import StatusError
from podling.model.rules.volume_binding import (
    BLOCK,
    PROVISIONED_BY,
    PROVISIONERS,
    RELEASED,
    SELECTED_NODE,
    STORAGE,
    WAITS,
    ZERO,
    class_of,
    is_bound,
    requested,
    size,
)
from podling.model.types.meta import ObjectMeta
from podling.model.types.persistent_volume import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimCondition,
    PersistentVolumeSpec,
)
from podling.model.types.references import ObjectReference
from podling.model.types.storage import CSINode, StorageClass, VolumeAttachment

Key = tuple[str, str, str]
"""Kind, namespace and name."""


class Sidecars:
    def __init__(self, client: Client, channel: grpc.aio.Channel) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._channel = client, channel
        self.informers = Informers(client)
        self._claims, self._volumes = self._of(PersistentVolumeClaim), self._of(PersistentVolume)
        self._attachments, self._classes = self._of(VolumeAttachment), self._of(StorageClass)
        self.driver = ""

    def _of(self, type_: Any) -> Any:
        informer: Any = self.informers.of(type_)

        def changed(_: Any, new: Any) -> None:
            if new is not None:
                self.queue.add((new.KIND, new.metadata.namespace, new.metadata.name))

        informer.subscribe(changed)
        return informer

    async def ask(self, service: str, method: str, **fields: Any) -> Any:
        request = getattr(controller_pb, f"{method}Request")
        answer = getattr(controller_pb, f"{method}Response")
        call = self._channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=answer.FromString,
        )
        return await call(request(**fields), wait_for_ready=True)

    async def reconcile(self, key: Key) -> None:
        kind, *name = key
        if kind == "PersistentVolumeClaim" and (claim := self._claims.get(*name)) is not None:
            await self._claim(claim)
        elif kind == "PersistentVolume" and (volume := self._volumes.get(*name)) is not None:
            await self._volume(volume)
        elif kind == "VolumeAttachment" and (attachment := self._attachments.get(*name)) is not None:
            await self._attachment(attachment)

    async def _claim(self, claim: PersistentVolumeClaim) -> None:
        if is_bound(claim):
            await self._grow(claim)
            return
        chosen = self._classes.get("", class_of(claim))
        annotations = claim.metadata.annotations
        if claim.spec.volume_name or annotations.get(PROVISIONERS[1]) != self.driver or chosen is None:
            return
        if chosen.volume_binding_mode == WAITS and SELECTED_NODE not in annotations:
            return
        name = f"pvc-{claim.metadata.uid}"
        access: dict[str, Any] = {"block": {}} if claim.spec.volume_mode == BLOCK else {"mount": {}}
        made = await self.ask(
            CONTROLLER,
            "CreateVolume",
            name=name,
            capacity_range=csi_pb2.CapacityRange(required_bytes=requested(claim).value()),
            volume_capabilities=[csi_pb2.VolumeCapability(**access)],
            parameters=chosen.parameters,
        )
        meta = claim.metadata
        ref = ObjectReference(
            kind=claim.KIND,
            api_version=claim.API_VERSION,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
        )
        spec = PersistentVolumeSpec(
            capacity={STORAGE: requested(claim)},
            access_modes=claim.spec.access_modes,
            claim_ref=ref,
            csi=CSIPersistentVolumeSource(
                driver=self.driver,
                volume_handle=made.volume.volume_id,
                volume_attributes=dict(made.volume.volume_context),
            ),
            persistent_volume_reclaim_policy=chosen.reclaim_policy or "Delete",
            storage_class_name=chosen.metadata.name,
            volume_mode=claim.spec.volume_mode,
            mount_options=chosen.mount_options,
        )
        try:
            await self._client.create(
                PersistentVolume(
                    metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: self.driver}), spec=spec
                )
            )
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _grow(self, claim: PersistentVolumeClaim) -> None:
        volume, wanted = self._volumes.get("", claim.spec.volume_name), requested(claim)
        if volume is None or claim.status.capacity.get(STORAGE, ZERO) >= wanted or volume.spec.csi is None:
            return
        if size(volume) < wanted:
            await self.ask(
                CONTROLLER,
                "ControllerExpandVolume",
                volume_id=volume.spec.csi.volume_handle,
                capacity_range=csi_pb2.CapacityRange(required_bytes=wanted.value()),
            )
            spec = replace(volume.spec, capacity={STORAGE: wanted})
            await self._client.update(replace(volume, spec=spec))
        pending = PersistentVolumeClaimCondition(type="FileSystemResizePending", status="True")
        if pending.type not in {one.type for one in claim.status.conditions}:
            status = replace(claim.status, conditions=[pending])
            await self._client.update(replace(claim, status=status), subresource="status")

    async def _volume(self, volume: PersistentVolume) -> None:
        if volume.metadata.annotations.get(PROVISIONED_BY) != self.driver or volume.spec.csi is None:
            return
        gone = volume.status.phase == RELEASED and not volume.metadata.deletion_timestamp
        if gone and volume.spec.persistent_volume_reclaim_policy == "Delete":
            handle = volume.spec.csi.volume_handle
            if any(
                one.spec.source.persistent_volume_name == volume.metadata.name
                for one in self._attachments.items()
            ):
                self.queue.add_after(("PersistentVolume", "", volume.metadata.name), 0.2)
                return
            await self.ask(CONTROLLER, "DeleteVolume", volume_id=handle)
            await self._client.delete(PersistentVolume, volume.metadata.name)

    async def _attachment(self, one: VolumeAttachment) -> None:
        volume = self._volumes.get("", one.spec.source.persistent_volume_name or "")
        if one.spec.attacher != self.driver or volume is None or volume.spec.csi is None:
            return
        handle, meta = volume.spec.csi.volume_handle, one.metadata
        mine = f"external-attacher/{self.driver.replace('.', '-')}"
        found = await self._client.get(CSINode, one.spec.node_name)
        node = next(driver.node_id for driver in found.spec.drivers if driver.name == self.driver)
        if meta.deletion_timestamp:
            if mine in meta.finalizers:
                await self.ask(CONTROLLER, "ControllerUnpublishVolume", volume_id=handle, node_id=node)
                left = [name for name in meta.finalizers if name != mine]
                await self._client.update(replace(one, metadata=replace(meta, finalizers=left)))
            return
        if mine not in meta.finalizers:
            await self._client.update(replace(one, metadata=replace(meta, finalizers=[mine])))
        elif not one.status.attached:
            said = await self.ask(CONTROLLER, "ControllerPublishVolume", volume_id=handle, node_id=node)
            context = dict(said.publish_context)
            status = replace(one.status, attached=True, attachment_metadata=context)
            await self._client.update(replace(one, status=status), subresource="status")


async def main(config: Path, socket: str) -> None:
    client = Client(kubeconfig.read(config).transport())
    async with asyncio.TaskGroup() as tasks:
        sidecars = Sidecars(client, grpc.aio.insecure_channel(f"unix://{socket}"))
        sidecars.driver = (await sidecars.ask(IDENTITY, "GetPluginInfo")).name
        await sidecars.informers.start(tasks)
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        await work(sidecars.queue, sidecars.reconcile, "sidecars")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
