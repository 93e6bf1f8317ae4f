"""Stopping a container with a signal of the pod's choice, by containerd's tasks service: its CRI knows only
the image's.
"""

from __future__ import annotations

import signal

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

from podling.cri.grpc import containerd_tasks_pb2 as pb
from podling.cri.grpc.connection import Answer, Connection
from podling.cri.interface import RuntimeFault

_TASKS = "/containerd.services.tasks.v1.Tasks/"
_METADATA = (("containerd-namespace", "k8s.io"),)
_DEADLINE = 30.0
_FIRST_REAL_TIME, _LAST_REAL_TIME = 34, 64
"""As Linux's C libraries leave them to programs."""


class ContainerdTasks:
    """containerd's tasks service, as far as the kubelet needs it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def end(self, container_id: str, name: str, seconds: int) -> bool:
        """Send the signal and wait at most `seconds` for the exit. False when the runtime has no such
        service, or the container does not run. Raises RuntimeFault."""
        try:
            kill = pb.KillRequest(container_id=container_id, signal=signal_number(name))
            await self._call("Kill", kill, Empty, _DEADLINE)
            await self._call("Wait", pb.WaitRequest(container_id=container_id), pb.WaitResponse, seconds)
        except RuntimeFault as fault:
            if fault.code in ("UNIMPLEMENTED", "NOT_FOUND"):
                return False
            if fault.code != "DEADLINE_EXCEEDED":
                raise
        return True

    async def _call(self, method: str, request: Message, answer: type[Answer], deadline: float) -> Answer:
        return await self._connection.call(f"{_TASKS}{method}", request, answer, deadline, _METADATA)


def signal_number(name: str) -> int:
    """The number of an API name: SIGUSR1, SIGRTMIN+3, SIGRTMAX-2."""
    for first, sign, number in (("SIGRTMIN", "+", _FIRST_REAL_TIME), ("SIGRTMAX", "-", _LAST_REAL_TIME)):
        if name.startswith(first):
            return number + int(f"{sign}{name.removeprefix(first).lstrip(sign) or 0}")
    return signal.Signals[name].value
