"""Which attach shows what was printed before it, and from where (R-CLI-3).

One that asks for it, and the first ever made to an ephemeral container: nobody has seen its output yet, and
kubectl, which has just made it, cannot say so. Later ones join what is going on, as they do anywhere.
"""

from __future__ import annotations

import time

from podling.cri.interface import RuntimeFault
from podling.kubelet.serving.container_log import container_log
from podling.kubelet.serving.log_directories import LogDirectories
from podling.kubelet.serving.pod_host import PodHost
from podling.kubelet.serving.replay_output import Replay
from podling.model.container import Container, EphemeralContainer
from podling.model.pod import Pod


class Replays:
    """Remembers, while the kubelet runs, which ephemeral containers have been attached to."""

    def __init__(self, host: PodHost, directories: LogDirectories) -> None:
        self._host = host
        self._directories = directories
        self._attached: dict[str, str] = {}
        """By container id, the uid of its pod."""

    def claim(self, pod: Pod, name: str, container_id: str, *, asked: bool) -> bool:
        """Whether this attach is one; the first to ask about an ephemeral container is."""
        first = container_id not in self._attached
        if _ephemeral(pod, name):
            here = {each.metadata.uid for each in self._host.pods()}
            self._attached = {one: uid for one, uid in self._attached.items() if uid in here}
            self._attached[container_id] = pod.metadata.uid
            return asked or first
        return asked

    async def of(self, pod: Pod, name: str, container_id: str, *, tells_exit: bool) -> Replay | None:
        """For an attach that the runtime has not been asked for yet; None when there is no log to show."""
        try:
            log = await container_log(self._host, container_id)
        except (RuntimeFault, OSError):
            return None
        asked, passes_end = time.time_ns(), _stdin_once(pod, name)
        return Replay(log, self._directories, asked, passes_end=passes_end, tells_exit=tells_exit)


def _ephemeral(pod: Pod, name: str) -> bool:
    return any(container.name == name for container in pod.spec.ephemeral_containers)


def _stdin_once(pod: Pod, name: str) -> bool:
    lists: tuple[list[Container] | list[EphemeralContainer], ...] = (
        pod.spec.init_containers,
        pod.spec.containers,
        pod.spec.ephemeral_containers,
    )
    return any(
        container.stdin_once for containers in lists for container in containers if container.name == name
    )
