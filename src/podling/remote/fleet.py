"""The same debug container in many pods: so many at a time, each to its end, whatever becomes of others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from podling.debug.container import WishError, free_name
from podling.debug.progress import FINISHED, NoContainer
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.remote.adding import Request, added, container_for
from podling.remote.pods import Cluster
from podling.remote.terminal import Narrator
from podling.remote.waiting import until_over

MOST_OUTPUT = 16 * 1024 * 1024
"""Bytes of one pod's output that are taken."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of one pod: the command's exit code and output, or why there are none."""

    namespace: str
    pod: str
    container: str = ""
    exit_code: int | None = None
    why_not: str = ""
    seconds: float = 0.0
    output: str = ""

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0


async def debug_all(
    cluster: Cluster, request: Request, pods: Sequence[Pod], parallel: int, tell: Callable[[Outcome], None]
) -> list[Outcome]:
    """The outcomes in the order of `pods`; `tell` hears each when it is known. Raises OSError when the
    cluster cannot be reached any more."""
    outcomes: dict[int, Outcome] = {}
    waiting = iter(enumerate(pods))

    async def work(waiting: Iterator[tuple[int, Pod]]) -> None:
        for number, pod in waiting:
            outcomes[number] = outcome = await _debugged(cluster, request, pod)
            tell(outcome)

    workers = [work(waiting) for _ in range(min(parallel, len(pods)))]
    async with asyncio.TaskGroup() as tasks:
        for worker in workers:
            tasks.create_task(worker)
    return [outcomes[number] for number in sorted(outcomes)]


async def _debugged(cluster: Cluster, request: Request, pod: Pod) -> Outcome:
    began, meta = time.monotonic(), pod.metadata
    quiet = Narrator(quiet=True)
    name = request.container or free_name(pod)
    asked = request._replace(namespace=meta.namespace, pod=meta.name)
    outcome = Outcome(meta.namespace, meta.name, name)
    try:
        if pod.status.phase in FINISHED:
            raise NoContainer(f"it has finished ({pod.status.phase})")
        container = await container_for(cluster, asked, pod, name, quiet)
        there = await added(cluster, pod, container)
        over = await until_over(cluster, there, name, request.timeout)
        limit = {"limitBytes": str(MOST_OUTPUT)}
        printed = await cluster.log(meta.namespace, meta.name, name, **limit)
    except (NoContainer, WishError) as error:
        found = msgspec.structs.replace(outcome, why_not=str(error))
    except StatusError as error:
        found = msgspec.structs.replace(outcome, why_not=error.message)
    else:
        why_not = "" if over.reason in ("Completed", "Error") else over.message or over.reason
        code = None if why_not else over.exit_code
        output = printed.decode(errors="replace")
        found = msgspec.structs.replace(outcome, exit_code=code, why_not=why_not, output=output)
    return msgspec.structs.replace(found, seconds=round(time.monotonic() - began, 3))
