"""What the in-memory runtime remembers of sandboxes and containers, and how CRI's messages say it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow_images import image_id
from podling.cri.hollow_script import Script


class HollowSandbox(msgspec.Struct):
    status: pb.PodSandboxStatus

    @property
    def label(self) -> str:
        metadata = self.status.metadata
        return f"{metadata.namespace}/{metadata.name}#{metadata.attempt}"

    def as_listed(self) -> pb.PodSandbox:
        status = self.status
        return pb.PodSandbox(
            id=status.id,
            metadata=status.metadata,
            state=status.state,
            created_at=status.created_at,
            labels=status.labels,
            annotations=status.annotations,
            runtime_handler=status.runtime_handler,
        )


class HollowContainer(msgspec.Struct):
    sandbox_id: str
    script: Script
    status: pb.ContainerStatus
    resources: pb.LinuxContainerResources
    ended: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def label(self) -> str:
        return f"{self.status.metadata.name}#{self.status.metadata.attempt}"

    @property
    def runs(self) -> bool:
        return self.status.state == pb.CONTAINER_RUNNING

    def end(self, exit_code: int, at: int, reason: str = "", message: str = "") -> None:
        status = self.status
        status.state = pb.CONTAINER_EXITED
        status.exit_code = exit_code
        status.finished_at = at
        status.reason = reason or ("Error" if exit_code else "Completed")
        status.message = message
        self.ended.set()

    def as_listed(self) -> pb.Container:
        status = self.status
        return pb.Container(
            id=status.id,
            pod_sandbox_id=self.sandbox_id,
            metadata=status.metadata,
            image=status.image,
            image_ref=status.image_ref,
            image_id=status.image_id,
            state=status.state,
            created_at=status.created_at,
            labels=status.labels,
            annotations=status.annotations,
        )

    def stats(self, now: int) -> pb.ContainerStats:
        """It uses nothing but the room of what it wrote."""
        attributes = pb.ContainerAttributes(
            id=self.status.id, metadata=self.status.metadata, labels=self.status.labels
        )
        written = pb.FilesystemUsage(
            timestamp=now,
            used_bytes=pb.UInt64Value(value=self.script.written_bytes),
            inodes_used=pb.UInt64Value(value=1),
        )
        return pb.ContainerStats(attributes=attributes, writable_layer=written)


def new_sandbox(config: pb.PodSandboxConfig, runtime_handler: str, address: str, now: int) -> HollowSandbox:
    """`address` is empty in the node's network."""
    options = config.linux.security_context.namespace_options
    status = pb.PodSandboxStatus(
        id=_new_id(),
        metadata=config.metadata,
        state=pb.SANDBOX_READY,
        created_at=now,
        network=pb.PodSandboxNetworkStatus(ip=address),
        linux=pb.LinuxPodSandboxStatus(namespaces=pb.Namespace(options=options)),
        labels=config.labels,
        annotations=config.annotations,
        runtime_handler=runtime_handler,
    )
    return HollowSandbox(status)


def new_container(
    sandbox_id: str, config: pb.ContainerConfig, log_directory: str, script: Script, now: int
) -> HollowContainer:
    status = pb.ContainerStatus(
        id=_new_id(),
        metadata=config.metadata,
        state=pb.CONTAINER_CREATED,
        created_at=now,
        image=config.image,
        image_ref=image_id(config.image.image),
        image_id=image_id(config.image.image),
        labels=config.labels,
        annotations=config.annotations,
        mounts=config.mounts,
        log_path=f"{log_directory}/{config.log_path}" if config.log_path else "",
    )
    return HollowContainer(sandbox_id, script, status, config.linux.resources)


def carries(labels: Mapping[str, str], wanted: Mapping[str, str] | None) -> bool:
    return not wanted or wanted.items() <= labels.items()


def _new_id() -> str:
    return uuid.uuid4().hex * 2
