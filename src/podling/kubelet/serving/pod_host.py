"""What the kubelet's server asks of the kubelet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from aiohttp import web

from podling.cri.interface import Runtime
from podling.model.pod import Pod

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]
Pages = Mapping[str, Page]
"""By path."""
Moment = Callable[[], Awaitable[object]]
"""Returns once it has come."""


class PodHost(Protocol):
    """Pods are those of this node, with the newest status the kubelet knows. Ids are the runtime's own,
    without the `containerd://` of the API.
    """

    @property
    def runtime(self) -> Runtime: ...

    @property
    def pages(self) -> Pages:
        """What it tells of itself and its node."""
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
