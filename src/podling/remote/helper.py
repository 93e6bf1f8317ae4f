"""A container of one's own in a pod, for as long as a block runs: it lives on its standard input, so that it
ends with the connection, also with that of a client that was killed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from podling.debug.container import Wish, all_containers
from podling.debug.progress import NoContainer, Over
from podling.model.types.pod import Pod
from podling.remote.adding import Request, added, container_for
from podling.remote.pods import Cluster
from podling.remote.streams import Wanted
from podling.remote.terminal import Narrator
from podling.remote.waiting import until_running
from podling.streaming.wire import Disconnected

LIVE = ("cat",)


@asynccontextmanager
async def helper(
    cluster: Cluster,
    pod: Pod,
    base: str,
    image: str,
    narrator: Narrator,
    *,
    target: str = "",
    profile: str,
    timeout: float,
    custom: Mapping[str, Any],
) -> AsyncGenerator[str]:
    """Its name, which begins with `base`; it runs. `custom` is more of the container. Raises WishError,
    NoContainer, StatusError, OSError."""
    taken = {container.name for container in all_containers(pod)}
    names = (f"{base}-{number}" if number > 1 else base for number in range(1, len(taken) + 2))
    name = next(name for name in names if name not in taken)
    wish = Wish(image, target, LIVE, stdin=True)
    request = Request(
        pod.metadata.namespace,
        pod.metadata.name,
        wish,
        name,
        profile,
        timeout=timeout,
        custom={"stdinOnce": True, **custom},
    )
    container = await container_for(cluster, request, pod, name, narrator)
    there = await added(cluster, pod, container)
    at = await until_running(cluster, there, name, narrator, timeout)
    if isinstance(at, Over):
        raise NoContainer(f"{name} could not be started: {at.message or at.reason}")
    alive = await cluster.attach(
        pod.metadata.namespace, pod.metadata.name, name, Wanted(stdin=True, stdout=True, stderr=False)
    )
    try:
        yield name
    finally:
        with suppress(Disconnected):
            if alive.stdin is not None:
                alive.stdin.end()
        await alive.close()
