"""The interface of a container runtime, as the kubelet uses it: CRI v1 calls and a stream of events.

Messages are CRI's own (`grpc/cri.proto`), so a client of any CRI v1 socket needs no translation.
`hollow/runtime.py` implements it in memory; `tests/contract/cri` runs over both. `told_features` says what a
runtime can do, from its status and its version.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Protocol

import msgspec

from podling.cri.grpc import cri_pb2 as pb

NOT_FOUND = "NOT_FOUND"
UNAVAILABLE = "UNAVAILABLE"
CANCELLED = "CANCELLED"
PullProgress = frozenset[tuple[str, int]]
"""(name, bytes present) of each blob that is being fetched."""
FIRST_WITH_IMAGES = (2, 1)
"""The first containerd version whose CRI mounts images."""


class RuntimeFault(Exception):
    """The runtime refused or failed a call. `code` is the name of gRPC's status: NOT_FOUND, UNAVAILABLE …"""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class EventKind(Enum):
    """What may have happened; `RuntimeEvent` has what each carries."""

    STARTED = "started"
    EXITED = "exited"
    OOM = "oom"
    RELIST = "relist"


class RuntimeEvent(msgspec.Struct, frozen=True):
    """Something happened to a container or sandbox.

    EXITED carries `exit_code` and `finished_at` (ns since the epoch): the exit is certain even while the
    runtime still reports RUNNING. RELIST carries nothing: events may have been missed (the runtime came
    back), so everything must be listed again.
    """

    kind: EventKind
    container_id: str = ""
    exit_code: int = 0
    finished_at: int = 0


class RuntimeFeatures(msgspec.Struct, frozen=True):
    """What only some CRI v1 runtimes can do.

    `handlers` are the runtime handlers it reports ("" is the default one). Those in `recursive_read_only` can
    make a mount read-only with all mounts below it, those in `user_namespaces` can give a pod a user
    namespace. `mounts_images`: a mount may name an image. `groups_policy`: it applies
    supplementalGroupsPolicy.
    """

    handlers: frozenset[str] = frozenset()
    recursive_read_only: frozenset[str] = frozenset()
    user_namespaces: frozenset[str] = frozenset()
    mounts_images: bool = False
    groups_policy: bool = False


class ImageMount(msgspec.Struct, frozen=True):
    """The arguments of mount(8): `options` are flags and data in one list."""

    type: str
    source: str
    options: tuple[str, ...]


class Runtime(Protocol):
    """CRI v1. Every call raises RuntimeFault; times are ns since the epoch, timeouts are seconds."""

    async def version(self) -> pb.VersionResponse: ...
    async def status(self) -> pb.StatusResponse: ...
    async def features(self) -> RuntimeFeatures: ...

    async def run_pod_sandbox(self, config: pb.PodSandboxConfig, runtime_handler: str = "") -> str: ...
    async def stop_pod_sandbox(self, sandbox_id: str) -> None: ...
    async def remove_pod_sandbox(self, sandbox_id: str) -> None: ...
    async def pod_sandbox_status(self, sandbox_id: str) -> pb.PodSandboxStatus: ...
    async def list_pod_sandbox(self, labels: Mapping[str, str] | None = None) -> list[pb.PodSandbox]: ...

    async def create_container(
        self, sandbox_id: str, config: pb.ContainerConfig, sandbox_config: pb.PodSandboxConfig
    ) -> str: ...
    async def start_container(self, container_id: str) -> None: ...
    async def stop_container(self, container_id: str, timeout: int, signal: str = "") -> None:
        """`signal` is the first signal; when empty, the image's or SIGTERM. `timeout` is in seconds."""
        ...

    async def remove_container(self, container_id: str) -> None: ...
    async def list_containers(self, labels: Mapping[str, str] | None = None) -> list[pb.Container]: ...
    async def container_status(self, container_id: str) -> pb.ContainerStatus: ...
    async def update_container_resources(
        self, container_id: str, resources: pb.LinuxContainerResources
    ) -> None: ...
    async def reopen_container_log(self, container_id: str) -> None: ...

    async def exec_sync(self, container_id: str, command: list[str], timeout: int) -> pb.ExecSyncResponse: ...
    async def exec(self, request: pb.ExecRequest) -> str:
        """The URL to stream with."""
        ...

    async def attach(self, request: pb.AttachRequest) -> str: ...
    async def port_forward(self, sandbox_id: str, ports: list[int]) -> str: ...

    async def list_container_stats(self) -> list[pb.ContainerStats]: ...

    async def image_status(self, image: str) -> pb.Image | None: ...
    async def list_images(self) -> list[pb.Image]: ...
    async def pull_image(
        self, image: str, auth: pb.AuthConfig | None = None, sandbox_config: pb.PodSandboxConfig | None = None
    ) -> str:
        """Returns the reference of the pulled image. Cancelling the call stops the pull in the runtime."""
        ...

    async def pull_progress(self) -> PullProgress | None:
        """The progress of all pulls together; None while something is unpacked, and from a runtime that does
        not report it."""
        ...

    async def remove_image(self, image: str) -> None: ...

    async def hold_image(self, name: str, image: str) -> list[ImageMount]:
        """How to mount an image's files, for runtimes that do not mount images themselves. The files stay
        until `let_image_go(name)`, whatever becomes of the image. A name that is held already is answered
        again."""
        ...

    async def let_image_go(self, name: str) -> None: ...
    async def held_images(self) -> list[str]: ...
    async def image_fs_info(self) -> pb.ImageFsInfoResponse:
        """The file systems that images are on, and those of writable layers if they are others."""
        ...

    def events(self) -> AsyncIterator[RuntimeEvent]:
        """Events from now on. The first is RELIST, sent when the stream is established, and again whenever
        the stream broke and came back. Never ends by itself."""
        ...

    async def close(self) -> None: ...


def told_features(version: pb.VersionResponse, status: pb.StatusResponse) -> RuntimeFeatures:
    """The features of a runtime. One from before CRI 1.30 (containerd before 2.0) reports no handlers at
    all."""
    handlers = status.runtime_handlers
    return RuntimeFeatures(
        handlers=frozenset(handler.name for handler in handlers),
        recursive_read_only=frozenset(h.name for h in handlers if h.features.recursive_read_only_mounts),
        user_namespaces=frozenset(h.name for h in handlers if h.features.user_namespaces),
        mounts_images=mounts_images(version),
        groups_policy=status.features.supplemental_groups_policy,
    )


def mounts_images(version: pb.VersionResponse) -> bool:
    """By version, because CRI does not report it; containerd was the last runtime to learn it."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version.runtime_version)[:2])
    return version.runtime_name != "containerd" or numbers >= FIRST_WITH_IMAGES
