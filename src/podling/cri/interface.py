"""The promise of a container runtime, as the kubelet uses it: CRI v1 calls plus a stream of what happened.

Messages are CRI's own (`grpc/cri.proto`), so any CRI v1 socket keeps the promise with no translation.
`hollow.py` keeps it in memory. `tests/contract/cri` runs over both.

What a CRI v1 runtime says it can, or what follows from its version. Pure.
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


class RuntimeFault(Exception):
    """The runtime refused or failed a call. `code` is gRPC's name of it: NOT_FOUND, UNAVAILABLE ..."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class EventKind(Enum):
    STARTED = "started"
    EXITED = "exited"
    OOM = "oom"
    RELIST = "relist"


class RuntimeEvent(msgspec.Struct, frozen=True):
    """Something happened to a container or sandbox.

    EXITED carries `exit_code` and `finished_at` (ns since the epoch): the exit is a fact even while the
    runtime still answers RUNNING for it. RELIST carries nothing: events may have been missed (the runtime
    came back), look again.
    """

    kind: EventKind
    container_id: str = ""
    exit_code: int = 0
    finished_at: int = 0


class RuntimeFeatures(msgspec.Struct, frozen=True):
    """What not every CRI v1 runtime can. `handlers` are those it tells of ("" is the default one), of which
    `recursive_read_only` can make mounts read-only with all mounts below them, and `user_namespaces` can
    give a pod users of its own; `mounts_images`: a mount may name an image; `groups_policy`: it keeps to
    supplementalGroupsPolicy."""

    handlers: frozenset[str] = frozenset()
    recursive_read_only: frozenset[str] = frozenset()
    user_namespaces: frozenset[str] = frozenset()
    mounts_images: bool = False
    groups_policy: bool = False


class ImageMount(msgspec.Struct, frozen=True):
    """As mount(8) would be told: `options` are flags and data in one list."""

    type: str
    source: str
    options: tuple[str, ...]


PullProgress = frozenset[tuple[str, int]]
"""What is being fetched, and how many bytes of each are there."""


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
        """`signal` is what it is first told with; the image's, or SIGTERM, when empty."""
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
        """The pulled image's reference. Whoever cancels it has the runtime stop."""
        ...

    async def pull_progress(self) -> PullProgress | None:
        """Of all pulls together; None while something is unpacked, and from a runtime that does not tell."""
        ...

    async def remove_image(self, image: str) -> None: ...

    async def hold_image(self, name: str, image: str) -> list[ImageMount]:
        """How to mount an image's files where the runtime does not mount images itself. They stay until the
        name is let go, whatever becomes of the image; a name that is held is answered again."""
        ...

    async def let_image_go(self, name: str) -> None: ...
    async def held_images(self) -> list[str]: ...
    async def image_fs_info(self) -> pb.ImageFsInfoResponse:
        """The file systems images are on, and those of writable layers where they are others."""
        ...

    def events(self) -> AsyncIterator[RuntimeEvent]:
        """What happens from now on. The first event is RELIST, said once the stream is established; it is
        said again whenever the stream was broken and came back. Never ends by itself."""
        ...

    async def close(self) -> None: ...


FIRST_WITH_IMAGES = (2, 1)
"""The containerd whose CRI mounts images."""


def told_features(version: pb.VersionResponse, status: pb.StatusResponse) -> RuntimeFeatures:
    """A runtime from before CRI 1.30 (containerd before 2.0) tells of no handlers at all."""
    handlers = status.runtime_handlers
    return RuntimeFeatures(
        handlers=frozenset(handler.name for handler in handlers),
        recursive_read_only=frozenset(h.name for h in handlers if h.features.recursive_read_only_mounts),
        user_namespaces=frozenset(h.name for h in handlers if h.features.user_namespaces),
        mounts_images=mounts_images(version),
        groups_policy=status.features.supplemental_groups_policy,
    )


def mounts_images(version: pb.VersionResponse) -> bool:
    """Nothing in CRI says so; containerd is the one that learnt it last."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version.runtime_version)[:2])
    return version.runtime_name != "containerd" or numbers >= FIRST_WITH_IMAGES
