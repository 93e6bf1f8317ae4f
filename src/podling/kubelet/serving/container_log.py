"""The log of one container: where it is, and who knows when it is complete."""

from __future__ import annotations

from pathlib import Path

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.serving.pod_host import PodHost


class ContainerLog(msgspec.Struct, frozen=True):
    path: Path
    _host: PodHost
    _container_id: str

    async def ended(self) -> bool:
        """Returns when the container has ended: True if its log is complete, False if its last bytes may be
        on their way. A runtime calls a container exited once it has written all of its log.
        """
        await self._host.container_ended(self._container_id)
        try:
            status = await self._host.runtime.container_status(self._container_id)
        except RuntimeFault:
            return True
        return status.state != pb.CONTAINER_RUNNING

    async def is_complete(self) -> bool:
        """Whether the container is known to have ended."""
        try:
            status = await self._host.runtime.container_status(self._container_id)
        except RuntimeFault:
            return False
        return status.state == pb.CONTAINER_EXITED

    def exit_code(self) -> int | None:
        """None while it is not known."""
        return self._host.exit_code(self._container_id)


async def container_log(host: PodHost, container_id: str) -> ContainerLog:
    """Raises RuntimeFault, and OSError when there is no such file."""
    path = Path((await host.runtime.container_status(container_id)).log_path)
    path.stat()
    return ContainerLog(path, host, container_id)
