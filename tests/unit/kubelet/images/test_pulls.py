"""Pulls end when nobody wants them, or when they get on no longer; and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage
from podling.cri.interface import RuntimeFault
from podling.kubelet.images.pulls import Pulls
from podling.model.time import SystemClock

STUCK, GOOD = HollowImage(stuck=True), HollowImage()
Told = Callable[[HollowRuntime, Pulls, asyncio.TaskGroup], Awaitable[None]]


async def told(what: Told, at_once: int = 0, **images: HollowImage) -> None:
    async with asyncio.TaskGroup() as tasks:
        runtime = HollowRuntime({f"{name}:1": image for name, image in images.items()})
        await what(runtime, Pulls(runtime, SystemClock(), tasks, at_once), tasks)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_runtime_stops_when_the_last_who_wanted_the_image_has_gone() -> None:
    async def story(runtime: HollowRuntime, pulls: Pulls, tasks: asyncio.TaskGroup) -> None:
        waiting = [tasks.create_task(pulls.pull("a:1", [], None)) for _ in range(2)]
        await settle()
        waiting[0].cancel()
        await settle()
        assert runtime.calls == ["pull a:1"]
        waiting[1].cancel()
        await settle()
        assert runtime.calls == ["pull a:1", "cancel pull a:1"]

    await told(story, a=STUCK)


async def test_who_comes_when_a_pull_is_being_cancelled_begins_another() -> None:
    async def story(runtime: HollowRuntime, pulls: Pulls, tasks: asyncio.TaskGroup) -> None:
        first = tasks.create_task(pulls.pull("a:1", [], None))
        await settle()
        first.cancel()
        second = tasks.create_task(pulls.pull("a:1", [], None))
        await settle()
        assert not second.done()
        assert runtime.calls == ["pull a:1", "cancel pull a:1", "pull a:1"]
        second.cancel()

    await told(story, a=STUCK)


async def test_a_pull_nobody_wants_gives_up_its_turn() -> None:
    async def story(runtime: HollowRuntime, pulls: Pulls, tasks: asyncio.TaskGroup) -> None:
        stuck = tasks.create_task(pulls.pull("a:1", [], None))
        await settle()
        unwanted = tasks.create_task(pulls.pull("b:1", [], None))
        next_ = tasks.create_task(pulls.pull("c:1", [], None))
        await settle()
        unwanted.cancel()
        stuck.cancel()
        await next_
        assert runtime.calls == ["pull a:1", "cancel pull a:1", "pull c:1"]

    await told(story, at_once=1, a=STUCK, b=GOOD, c=GOOD)


async def test_a_runtime_that_gives_up_by_itself_is_told_of_as_such() -> None:
    """A pull somebody waits for is cancelled by nobody else."""

    async def story(runtime: HollowRuntime, pulls: Pulls, tasks: asyncio.TaskGroup) -> None:
        with pytest.raises(RuntimeFault) as fault:
            await pulls.pull("reg.io:5000/a:1", [], None)
        assert fault.value.code == "DEADLINE_EXCEEDED"
        assert fault.value.message == (
            "the container runtime gave up pulling reg.io:5000/a:1, which made no progress: registry "
            "reg.io:5000, or its mirror, does not answer or sends nothing; see whether this node can reach it"
        )

    gone: dict[str, Any]
    gone = {"reg.io:5000/a": HollowImage(pull_faults=[RuntimeFault("CANCELLED", "context canceled")])}
    await told(story, **gone)
