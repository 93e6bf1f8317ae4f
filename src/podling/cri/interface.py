"""The promise of a container runtime, as the kubelet uses it: CRI v1 calls plus a stream of what happened.

Messages are CRI's own (`grpc/cri.proto`), so any CRI v1 socket keeps the promise with no translation.
`hollow.py` keeps it in memory. `tests/contract/cri` runs over both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from podling.cri.grpc import cri_pb2 as pb


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


@dataclass(frozen=True, slots=True)
class RuntimeEvent:
    """Something happened to a container or sandbox.

    EXITED carries `exit_code` and `finished_at` (ns since the epoch): the exit is a fact even while the
    runtime still answers RUNNING for it. RELIST carries nothing: events may have been missed (the runtime
    came back), look again.
    """

    kind: EventKind
    container_id: str = ""
    exit_code: int = 0
    finished_at: int = 0


class Runtime(Protocol):
    """CRI v1. Every call raises RuntimeFault; times are ns since the epoch, timeouts are seconds."""

    async def version(self) -> pb.VersionResponse: ...
    async def status(self) -> pb.RuntimeStatus: ...

    async def run_pod_sandbox(self, config: pb.PodSandboxConfig, runtime_handler: str = "") -> str: ...
    async def stop_pod_sandbox(self, sandbox_id: str) -> None: ...
    async def remove_pod_sandbox(self, sandbox_id: str) -> None: ...
    async def pod_sandbox_status(self, sandbox_id: str) -> pb.PodSandboxStatus: ...
    async def list_pod_sandbox(self, labels: Mapping[str, str] | None = None) -> list[pb.PodSandbox]: ...

    async def create_container(
        self, sandbox_id: str, config: pb.ContainerConfig, sandbox_config: pb.PodSandboxConfig
    ) -> str: ...
    async def start_container(self, container_id: str) -> None: ...
    async def stop_container(self, container_id: str, timeout: int) -> None: ...
    async def remove_container(self, container_id: str) -> None: ...
    async def list_containers(self, labels: Mapping[str, str] | None = None) -> list[pb.Container]: ...
    async def container_status(self, container_id: str) -> pb.ContainerStatus: ...
    async def reopen_container_log(self, container_id: str) -> None: ...

    async def exec_sync(self, container_id: str, command: list[str], timeout: int) -> pb.ExecSyncResponse: ...
    async def exec(self, request: pb.ExecRequest) -> str:
        """The URL to stream with."""
        ...

    async def attach(self, request: pb.AttachRequest) -> str: ...
    async def port_forward(self, sandbox_id: str, ports: list[int]) -> str: ...

    async def image_status(self, image: str) -> pb.Image | None: ...
    async def list_images(self) -> list[pb.Image]: ...
    async def pull_image(
        self, image: str, auth: pb.AuthConfig | None = None, sandbox_config: pb.PodSandboxConfig | None = None
    ) -> str:
        """The pulled image's reference."""
        ...

    async def remove_image(self, image: str) -> None: ...

    def events(self) -> AsyncIterator[RuntimeEvent]:
        """What happens from now on. The first event is RELIST, said once the stream is established; it is
        said again whenever the stream was broken and came back. Never ends by itself."""
        ...

    async def close(self) -> None: ...
