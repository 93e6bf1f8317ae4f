"""Whenever the controller of Jobs is killed, the next one goes on: each pod counts once, and no index runs
again that has succeeded."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from podling.client.client import Client
from podling.client.transport import JSON, Answer, Transport
from podling.controllers.workloads.jobs import Jobs
from podling.model.rules.jobs import COMPLETION_INDEX, is_finished, is_tracked
from podling.model.types.batch import Job, JobStatus
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Never"}}
MANY = 12
APART = 8
"""Writes from one kill to the next."""


class Killed(Exception):
    """The controller has ended where it was."""


class Mortal:
    """A transport whose user is killed at one of its writes, before that is done or before it is answered."""

    def __init__(self, inner: Transport, writes: int, *, is_done: bool) -> None:
        self._inner, self._is_done = inner, is_done
        self.left = writes

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        if method != "GET":
            self.left -= 1
        if self.left < 0 or (self.left == 0 and not self._is_done):
            raise Killed
        answer = await self._inner.request(method, path, query, body, content_type)
        if self.left == 0 and method != "GET":
            raise Killed
        return answer

    def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(path, query)

    async def close(self) -> None:
        await self._inner.close()


class World:
    """A Job, the pods that run for it, and controllers of which one follows the other."""

    def __init__(self, cluster: Cluster, name: str, kills: list[tuple[int, bool]]) -> None:
        self._cluster, self._name, self._kills = cluster, name, kills
        self.succeeded: set[str] = set()
        """Indexes, or uids of pods without one."""
        self.failed = 0
        self._known: set[str] = set()
        self._before = JobStatus()
        self._parallelism = 0
        self._next()

    def _next(self) -> None:
        writes, is_done = self._kills.pop(0) if self._kills else (1 << 30, False)
        client = self._cluster.account("job-controller")
        self._mortal = Mortal(client._transport, writes, is_done=is_done)
        informers = self._cluster.informers
        jobs, pods = informers.of(Job), informers.of(Pod)
        # Nobody tells one that has ended.
        jobs._handlers.clear()
        pods._handlers.clear()
        one = Jobs(Client(self._mortal), jobs, pods, self._cluster.events, self._cluster.clock)
        self._cluster._controllers[:] = [one]
        self._controller = one

    async def begin(self, **spec: Any) -> None:
        self._parallelism = spec["parallelism"]
        await self._cluster.make(Job, self._name, spec={"template": TEMPLATE, **spec})
        await self.settle()

    async def settle(self) -> None:
        while True:
            try:
                await self._cluster.settle()
                break
            except Killed:
                self._next()
        await self._check()

    async def job(self) -> Job:
        return await self._cluster.client.get(Job, self._name, "ns")

    async def pods(self) -> list[Pod]:
        """Those that run."""
        return [
            pod
            for pod in (await self._cluster.client.list(Pod, "ns")).items
            if pod.status.phase not in ("Succeeded", "Failed") and not pod.metadata.deletion_timestamp
        ]

    async def end(self, pod: Pod, phase: str) -> None:
        meta = pod.metadata
        said = {"status": {"phase": phase}}
        await self._cluster.client.patch(Pod, meta.name, "ns", said, subresource="status")
        if is_tracked(pod) and phase == "Succeeded":
            self.succeeded.add(meta.annotations.get(COMPLETION_INDEX, meta.uid))
            self._known = {one.metadata.uid for one in await self.pods()}
        elif is_tracked(pod):
            self.failed += 1

    async def change(self, **spec: Any) -> None:
        self._parallelism = spec.get("parallelism", self._parallelism)
        await self._cluster.client.patch(Job, self._name, "ns", {"spec": spec})

    async def wait(self, seconds: float) -> None:
        self._cluster.clock.move(seconds)
        self._controller.queue.add(("ns", self._name))
        await self.settle()

    async def to_the_end(self) -> None:
        for _ in range(20):
            await self.change(suspend=False)
            await self.wait(700)
            if is_finished(await self.job()):
                break
            for pod in await self.pods():
                await self.end(pod, "Succeeded")
            await self.settle()
        job = await self.job()
        assert [one.type for one in job.status.conditions if one.status == "True"] == [
            "SuccessCriteriaMet",
            "Complete",
        ]
        status, uncounted = job.status, job.status.uncounted_terminated_pods
        assert (status.succeeded, status.failed) == (len(self.succeeded), self.failed)
        assert uncounted is not None and not uncounted.succeeded and not uncounted.failed
        pods = (await self._cluster.client.list(Pod, "ns")).items
        assert not any(map(is_tracked, pods))
        for pod in pods:
            await self._cluster.client.delete(Pod, pod.metadata.name, "ns")
        await self._cluster.client.delete(Job, self._name, "ns", propagation="Background")
        await self._cluster.see()

    async def _check(self) -> None:
        job, pods = await self.job(), await self.pods()
        again = [
            pod.metadata.name
            for pod in pods
            if pod.metadata.annotations.get(COMPLETION_INDEX) in self.succeeded
            and pod.metadata.uid not in self._known
        ]
        assert not again, "an index that succeeded runs again"
        assert len(pods) <= self._parallelism
        status = job.status
        assert status.failed >= self._before.failed and status.succeeded >= self._before.succeeded
        assert status.active == len(pods)
        self._before = status


async def story(world: World, **spec: Any) -> None:
    """One of each thing that may happen."""
    await world.begin(completions=4, parallelism=3, backoffLimit=50, **spec)
    first, *_ = await world.pods()
    await world.end(first, "Failed")
    await world.settle()
    await world.wait(700)
    first, *_ = await world.pods()
    await world.end(first, "Succeeded")
    await world.settle()
    await world.change(suspend=True)
    await world.settle()
    await world.change(suspend=False)
    await world.settle()
    await world.change(parallelism=1)
    await world.settle()
    await world.to_the_end()


@pytest.mark.parametrize(("mode", "is_done"), [("Indexed", False), ("NonIndexed", True)])
async def test_killed_at_each_write(cluster: Cluster, mode: str, is_done: bool) -> None:
    """`is_done`: whether the write is done that the controller gets no answer to. What one life began is over
    long before the next kill."""
    whole = await begun(cluster, "work", [])
    await story(whole, completionMode=mode)
    writes = (1 << 30) - whole._mortal.left
    assert writes > 20
    for first in range(1, APART + 1):
        kills = [(first, is_done), *[(APART, is_done)] * (writes // APART)]
        await story(await begun(cluster, f"work{first}", kills), completionMode=mode)


async def begun(cluster: Cluster, name: str, kills: list[tuple[int, bool]]) -> World:
    world = World(cluster, name, kills)
    await cluster.informers.start(cluster._tasks)
    return world


async def test_killed_again_and_again(cluster: Cluster) -> None:
    for seed in range(MANY):
        chance = random.Random(seed)
        kills = [(chance.randint(1, 6), chance.random() < 0.5) for _ in range(10)]
        world = await begun(cluster, f"work{seed}", kills)
        mode = chance.choice(("Indexed", "NonIndexed"))
        await world.begin(completions=6, parallelism=3, backoffLimit=50, completionMode=mode)
        for _ in range(8):
            pods = await world.pods()
            what = chance.choice(("Succeeded", "Succeeded", "Failed", "suspend", "parallelism", "wait"))
            if what == "suspend":
                await world.change(suspend=chance.random() < 0.5)
            elif what == "parallelism":
                await world.change(parallelism=chance.randint(1, 4))
            elif what == "wait":
                await world.wait(chance.choice((5, 15, 700)))
            elif pods:
                await world.end(chance.choice(pods), what)
            await world.settle()
        await world.to_the_end()
