"""What the kubelet's server, its logs and its statistics need of the kubelet (`PodHost`), and the errors it
answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from aiohttp import web

from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.host.disk import VolumeUse
from podling.model.types.pod import Pod

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]
Pages = Mapping[str, Page]
"""By path."""
Signal = Callable[[], Awaitable[object]]
"""An awaitable that completes when an event happens: the kubelet stops, a container's stop begins."""


class ClaimedUse(NamedTuple):
    """Of a volume of a pod. `claim` is empty if the pod brings it."""

    volume: str
    claim: str
    use: VolumeUse


class PodHost(Protocol):
    """The pods of this node, with the newest status that the kubelet knows. Container and sandbox ids are the
    runtime's own, without the `containerd://` of the API."""

    @property
    def runtime(self) -> Runtime: ...

    @property
    def pages(self) -> Pages:
        """Handlers of further paths: stats, metrics, configuration."""
        ...

    def pods(self) -> Sequence[Pod]: ...

    def pod(self, namespace: str, name: str) -> Pod | None: ...

    def running_container(self, pod: Pod, name: str) -> str | None:
        """The container of that name, of whichever kind (R-INIT-8, R-EPH-6), if it runs."""
        ...

    def newest_container(self, pod: Pod, name: str) -> str | None:
        """The container of that name that was begun last, whether or not it still runs."""
        ...

    def ready_sandbox(self, pod: Pod) -> str | None: ...

    async def container_ended(self, container_id: str) -> None:
        """Returns once that container does not run any more; at once if it is not known."""
        ...

    def exit_code(self, container_id: str) -> int | None:
        """What that container has ended with; None if it has not, or is not known."""
        ...

    async def container_stopping(self, container_id: str) -> None:
        """Returns once the kubelet has begun to stop that container, or it does not run any more."""
        ...

    async def sandbox_ended(self, sandbox_id: str) -> None:
        """Returns once that sandbox is of no use any more; at once if it is not known."""
        ...


class MeasuredHost(PodHost, Protocol):
    """With what statistics need besides."""

    async def volume_uses(self, pod: Pod) -> Sequence[ClaimedUse]:
        """Of its volumes that drivers or claims have made, where somebody says it."""
        ...


class HTTPRefusal(Exception):
    """An HTTP error in plain text, with the status code of Kubernetes' kubelet."""

    def __init__(self, status: int, text: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = list(headers)

    def response(self) -> web.Response:
        return web.Response(status=self.status, text=self.text, headers=self.headers)


def of_runtime(fault: RuntimeFault) -> HTTPRefusal:
    return HTTPRefusal(404 if fault.code == "NOT_FOUND" else 500, fault.message)


def pod_of(host: PodHost, request: web.Request) -> Pod | None:
    """The pod the path names; with a uid it must be that one and not another of its name."""
    names = request.match_info
    pod = host.pod(names["namespace"], names["pod"])
    if pod is not None and names.get("uid", pod.metadata.uid) != pod.metadata.uid:
        return None
    return pod
