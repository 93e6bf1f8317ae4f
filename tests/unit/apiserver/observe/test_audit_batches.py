"""R-EPH-7: in which modes events of the audit log are waited for, and what becomes of those that are lost."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from podling.apiserver.observe.audit_batches import Batches, Batching
from podling.model.rules.audit_modes import BLOCKING

AT_ONCE = Batching()


class Disk(Batches):
    """Takes batches while `open`, and refuses those with an event `bad`."""

    name = "disk"
    COMPLAINT: ClassVar[str] = "no"

    def __init__(self, batching: Batching = AT_ONCE) -> None:
        super().__init__(batching, BLOCKING)
        self.batches: list[list[bytes]] = []
        self.left: list[bytes] = []
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def _deliver(self, batch: list[bytes]) -> str:
        self.asked.set()
        await self.open.wait()
        self.batches.append(batch)
        return "it is bad" if b"bad" in batch else ""

    def _left(self, events: list[bytes]) -> None:
        self.left += events


async def test_who_waits_goes_on_once_the_own_event_is_there() -> None:
    disk = Disk(Batching(max_wait=1000))
    assert await disk.kept(), "nothing was written"
    disk.write(b"a")
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        first = disk.kept()
        tasks.create_task(disk.run())
        await disk.asked.wait()
        disk.write(b"b")
        disk.write(b"c")
        others = [disk.kept() for _ in range(2)]
        assert not first.done()
        disk.open.set()
        assert [await first, *[await other for other in others]] == [True, True, True]
        disk.close()
    assert disk.batches == [[b"a"], [b"b", b"c"]], "requests share a batch"


async def test_who_waits_hears_that_it_is_lost() -> None:
    disk = Disk()
    disk.open.set()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(disk.run())
        disk.write(b"bad")
        assert not await disk.kept()
        assert (disk.lost, disk.fault) == (1, "it is bad")
        disk.write(b"good")
        assert await disk.kept()
        assert (disk.lost, disk.fault) == (1, "")
        disk.close()


async def test_nobody_waits_for_ever_when_it_ends() -> None:
    disk = Disk()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        disk.write(b"a")
        waiting = disk.kept()
        running = tasks.create_task(disk.run())
        await disk.asked.wait()
        disk.write(b"b")
        running.cancel()
        assert not await waiting
    assert disk.left == [b"b"]


async def test_a_buffer_that_is_full_loses_the_newest() -> None:
    disk = Disk(Batching(buffer_size=1, max_size=1))
    disk.write(b"a")
    disk.write(b"b")
    assert (disk.lost, disk.full) == (1, False)


async def test_who_waits_waits_for_the_part_that_has_the_own_event() -> None:
    """Batches have a longest length: what was written together may go in several."""
    disk = Disk(Batching(max_bytes=4))
    disk.open.set()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        disk.write(b"good")
        first = disk.kept()
        disk.write(b"bad")
        second = disk.kept()
        tasks.create_task(disk.run())
        assert (await first, await second) == (True, False)
        disk.close()
    assert disk.batches == [[b"good"], [b"bad"]]


async def test_what_is_under_way_is_waited_for() -> None:
    """Who asks late, since another sink was waited for first, hears of it all the same."""
    disk = Disk()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(disk.run())
        disk.write(b"bad")
        await disk.asked.wait()
        late = disk.kept()
        disk.open.set()
        assert not await late
        disk.close()
