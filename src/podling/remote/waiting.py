"""Wait for a container to run, and say for what: from a watch of its pod, and of the events about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from podling.debug.container import pod_path
from podling.debug.progress import Never, NoContainer, Over, Running, TooLate, Waiting, progress
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.process.waits import Backoff
from podling.remote.beside import beside
from podling.remote.pods import Cluster
from podling.remote.terminal import Narrator

NOT_FOUND, GONE = 404, 410
RETRY = Backoff(0.1, 10.0)
UNTOLD = 0.5
"""Seconds of a wait of which no events are told: a container whose image is there runs by then."""


async def until_running(
    cluster: Cluster, pod: Pod, name: str, narrator: Narrator, seconds: float
) -> Running | Over:
    """Raises NoContainer, StatusError, OSError."""
    line = ""
    try:
        told = [_tell_events(cluster, pod, name, narrator)] if narrator.is_live else []
        async with asyncio.timeout(seconds), beside(*told):
            async for at in _positions(cluster, pod, name):
                if not isinstance(at, Waiting):
                    return at
                line = at.line
                narrator.now(f"{name}: {line}")
    except TimeoutError:
        raise TooLate(f"{name} does not run after {seconds:g} seconds: {line}") from None
    finally:
        narrator.clear()
    raise AssertionError("a pod is watched until it is gone")


async def until_over(cluster: Cluster, pod: Pod, name: str, seconds: float | None = None) -> Over:
    """Raises NoContainer, TooLate, StatusError, OSError."""
    at: Waiting | Running | Over = Running()
    try:
        async with asyncio.timeout(seconds):
            async for at in _positions(cluster, pod, name):
                if isinstance(at, Over):
                    return at
    except TimeoutError:
        stands = f"does not run after {seconds:g} seconds: {at.line}" if isinstance(at, Waiting) else ""
        raise TooLate(f"{name} {stands or f'still runs after {seconds:g} seconds'}") from None
    raise AssertionError("a pod is watched until it is gone")


async def _positions(cluster: Cluster, pod: Pod, name: str) -> AsyncGenerator[Waiting | Running | Over, None]:
    """Where the container stands, and again after each change. Raises NoContainer."""
    async for found in states(cluster, pod):
        at = progress(found, name)
        if isinstance(at, Never):
            raise NoContainer(at.line)
        yield at
    raise NoContainer(f"pod {pod.metadata.name} was deleted")


async def states(cluster: Cluster, pod: Pod) -> AsyncGenerator[Pod, None]:
    """The pod, and again after each change, until it is gone."""
    namespace, name = pod.metadata.namespace, pod.metadata.name
    retry = RETRY.begin()
    yield pod
    while True:
        version = pod.metadata.resource_version
        try:
            changes = cluster.changes(pod_path(namespace), Pod, version, f"metadata.name={name}")
            async with aclosing(changes) as stream:
                async for change in stream:
                    if change.type == "BOOKMARK":
                        continue
                    if change.type == "DELETED" or change.object.metadata.uid != pod.metadata.uid:
                        return
                    pod = change.object
                    yield pod
        except StatusError as error:
            if error.code != GONE:
                raise
        if pod.metadata.resource_version == version:
            # Nothing came: a server that ends every watch at once must not be asked without pause.
            await asyncio.sleep(retry.next())
        else:
            retry.reset()
        found = await again(cluster, pod)
        if found is None:
            return
        if found.metadata.resource_version != pod.metadata.resource_version:
            pod = found
            yield pod


async def again(cluster: Cluster, pod: Pod) -> Pod | None:
    """The pod as it is now; None if it is gone, even if another has its name."""
    try:
        found = await cluster.get(pod.metadata.namespace, pod.metadata.name)
    except StatusError as error:
        if error.code != NOT_FOUND:
            raise
        return None
    return found if found.metadata.uid == pod.metadata.uid else None


async def _tell_events(cluster: Cluster, pod: Pod, name: str, narrator: Narrator) -> None:
    """What the kubelet does for the container. Who may not read events is told less."""
    where = f"/api/v1/namespaces/{pod.metadata.namespace}/events"
    about = f"involvedObject.uid={pod.metadata.uid}"
    # Another connection, its handshake and its watch would take the processor that the container starts with.
    await asyncio.sleep(UNTOLD)
    from podling.model.types.core import Event

    try:
        async with aclosing(cluster.changes(where, Event, "", about)) as stream:
            async for change in stream:
                path = change.object.involved_object.field_path
                if change.type in ("ADDED", "MODIFIED") and (not path or path.endswith(f"{{{name}}}")):
                    narrator.now(f"{name}: {change.object.message}")
    except (StatusError, OSError):
        return
