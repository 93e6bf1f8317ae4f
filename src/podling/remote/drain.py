"""Empties a node, as `kubectl drain` does: no pod comes any more, and those that are there are evicted, as
far as their disruption budgets let them go.

Pods of DaemonSets and mirrors of static pods stay: they would be made again for the same node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from podling.client.client import Client
from podling.client.informer import Informer
from podling.model.errors import StatusError
from podling.model.rules.status import is_mirror, is_terminal
from podling.model.types.meta import DeleteOptions, ObjectMeta, Preconditions
from podling.model.types.node import Node
from podling.model.types.pod import Eviction, Pod

AGAIN = 5.0
"""Seconds until a pod that its budget keeps is tried again, as by kubectl."""

Report = Callable[[str], None]
Sleep = Callable[[float], Awaitable[object]]


class DrainError(Exception):
    """The node was not emptied; says why. It takes no pods any more."""


class Plan(NamedTuple):
    evicted: list[Pod]
    unmanaged: list[str]
    """Those of them that nobody makes again."""


def plan(pods: Iterable[Pod]) -> Plan:
    evicted = [pod for pod in pods if not is_mirror(pod) and not _stays(pod)]
    alone = [_named(pod) for pod in evicted if not is_terminal(pod) and _controller(pod) == ""]
    return Plan(evicted, alone)


def _controller(pod: Pod) -> str:
    return next((one.kind for one in pod.metadata.owner_references if one.controller), "")


def _stays(pod: Pod) -> bool:
    return _controller(pod) == "DaemonSet" and not is_terminal(pod)


def _named(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


async def cordon(client: Client, node: str) -> None:
    """Raises StatusError, OSError."""
    await client.patch(Node, node, "", {"spec": {"unschedulable": True}})


async def drain(
    client: Client,
    node: str,
    within: float,
    report: Report,
    *,
    force: bool,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Returns when the pods are gone; `within` seconds. Pods that nobody makes again are evicted with `force`
    only. Raises DrainError, StatusError, OSError."""
    await cordon(client, node)
    pods = Informer(client, Pod, field_selector=f"spec.nodeName={node}")
    changed = asyncio.Event()
    pods.subscribe(lambda old, new: changed.set())

    async def evict(pod: Pod) -> None:
        meta = pod.metadata
        eviction = Eviction(
            metadata=ObjectMeta(name=meta.name, namespace=meta.namespace),
            delete_options=DeleteOptions(preconditions=Preconditions(uid=meta.uid)),
        )
        while (found := pods.get(meta.namespace, meta.name)) and found.metadata.uid == meta.uid:
            try:
                if not found.metadata.deletion_timestamp:
                    await client.create_subresource(Pod, meta.name, "eviction", eviction)
                    report(f"evicting pod {_named(pod)}")
                return
            except StatusError as error:
                if error.code == 404:
                    return
                if error.code != 429:
                    raise
                report(f"pod {_named(pod)} waits: {error.message}")
                await sleep(AGAIN)

    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(pods.run())
        try:
            async with asyncio.timeout(within):
                await pods.wait_synced()
                planned = plan(pods.items())
                if planned.unmanaged and not force:
                    listed = ", ".join(planned.unmanaged)
                    raise DrainError(f"nobody makes these pods again, once they are gone: {listed}")
                async with asyncio.TaskGroup() as evicting:
                    for pod in planned.evicted:
                        evicting.create_task(evict(pod))
                uids = {pod.metadata.uid for pod in planned.evicted}
                while any(pod.metadata.uid in uids for pod in pods.items()):
                    changed.clear()
                    await changed.wait()
        except TimeoutError as error:
            left = ", ".join(_named(pod) for pod in plan(pods.items()).evicted)
            raise DrainError(f"after {within:g} s these pods are still there: {left}") from error
        finally:
            following.cancel()
