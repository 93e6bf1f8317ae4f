"""The work queue: a key waits once, is worked on once at a time, and no change is missed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
import uvloop

from podling.client.workqueue import A_SECOND, AT_ONCE, RETRY, WorkQueue, work


async def test_a_key_waits_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]


async def test_a_key_added_while_worked_on_comes_again_afterwards() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b", "not a: it is being worked on"
    queue.done("a")
    assert await queue.get() == "a"


@pytest.mark.parametrize(
    ("failures", "delay"), [(1, 0.005), (2, 0.01), (5, 0.08), (100, 1000.0), (10_000, 1000.0)]
)
def test_retry_delay(failures: int, delay: float) -> None:
    assert RETRY.after(failures) == pytest.approx(delay)


async def test_a_failure_is_tried_again_and_success_forgets_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    tried: list[str] = []
    done = asyncio.Event()

    async def reconcile(key: str) -> None:
        tried.append(key)
        if len(tried) < 3:
            raise ValueError(key)
        done.set()

    queue.add("a")
    worker = asyncio.get_running_loop().create_task(work(queue, reconcile, "test"))
    await done.wait()
    worker.cancel()
    assert tried == ["a", "a", "a"]


async def test_the_earlier_of_two_delays_wins() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0.0)
    queue.add_after("a", 3600.0)
    assert await queue.get() == "a"
    queue.add_after("b", 3600.0)
    queue.add_after("b", 0.0)
    assert await queue.get() == "b"
    queue.close()


class Held(BaseException):
    """The loop was held: nobody else would ever run."""


MANY = 10_000
"""More turns than any reconciler may have while somebody else waits for one."""


class Misbehaving:
    """Reconcilers that find more to do each time, and never wait for anything."""

    def __init__(self, *next_keys: str) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self.worked_on: Counter[str] = Counter()
        self._next = dict(pairwise([*next_keys, *next_keys[:1]]))

    async def reconcile(self, key: str) -> None:
        self.worked_on[key] += 1
        if self.worked_on.total() > MANY:
            raise Held
        if key in self._next:
            self.queue.add(self._next[key])

    async def run(self, *keys: str, until: Callable[[], Awaitable[object]]) -> None:
        for key in keys:
            self.queue.add(key)
        worker = asyncio.get_running_loop().create_task(work(self.queue, self.reconcile, "test"))
        await until()
        worker.cancel()


@pytest.mark.parametrize("circle", [["a"], ["a", "b"], ["a", "b", "c"]])
async def test_a_reconciler_that_adds_keys_for_ever_lets_the_loop_turn(circle: list[str]) -> None:
    bad = Misbehaving(*circle)

    async def other_work() -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    await bad.run(*circle, "other", until=other_work)
    assert bad.worked_on["other"] == 1
    assert sum(bad.worked_on.values()) <= 102, "one key a turn of the loop"


def test_a_key_that_comes_back_for_ever_does_so_at_a_bounded_rate(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def story() -> None:
        bad = Misbehaving("a")

        async def late_key() -> None:
            await asyncio.sleep(9.95)
            bad.queue.add("other")
            await asyncio.sleep(0.01)

        await bad.run("a", until=late_key)
        assert bad.worked_on == {"a": AT_ONCE + 9.9 * A_SECOND, "other": 1}

    in_no_time(story())


def test_two_who_undo_each_others_work_do_so_at_a_bounded_rate(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def story() -> None:
        first, second = Misbehaving(), Misbehaving()

        async def undo() -> None:
            """As an informer does: what one writes is news to the other."""
            for _ in range(MANY // 2):
                first.queue.add("a")
                second.queue.add("a")
                await asyncio.sleep(0.001)

        running = asyncio.get_running_loop().create_task(second.run(until=asyncio.Event().wait))
        await first.run(until=undo)
        running.cancel()
        bound = AT_ONCE + A_SECOND * MANY // 2 // 1000
        assert first.worked_on["a"] <= bound >= second.worked_on["a"]

    in_no_time(story())


def test_a_key_that_rests_may_come_at_once_again_and_is_forgotten(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def story() -> None:
        queue: WorkQueue[str] = WorkQueue()

        async def take(*keys: str) -> None:
            for key in keys:
                queue.add(key)
                assert await queue.get() == key
                queue.done(key)

        for _ in range(3):
            await take(*["a"] * AT_ONCE)
            await asyncio.sleep(AT_ONCE / A_SECOND)
        await take(*map(str, range(100)))
        await asyncio.sleep(1)
        await take("b")
        assert list(queue._paid_until) == ["b"], "only the busy ones are kept"

    in_no_time(story())


@pytest.mark.parametrize("seconds", [0.0, 0.0001, 0.4])
def test_delays_below_what_the_loop_counts_in(seconds: float) -> None:
    """uvloop counts in milliseconds, and gives another kind of handle for none of them."""

    async def story() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add_after("a", seconds)
        queue.add_after("a", seconds)
        queue.add_after("a", 0.0001)
        assert await queue.get() == "a"
        queue.close()

    uvloop.run(story())


def test_a_key_that_comes_back_for_ever_does_so_on_uvloop_too() -> None:
    async def story() -> None:
        bad = Misbehaving("a")
        times = AT_ONCE + 3

        async def many() -> None:
            while bad.worked_on["a"] < times:
                bad.queue.add("a")
                await asyncio.sleep(0.0005)

        await asyncio.wait_for(bad.run("a", until=many), 30)
        assert bad.worked_on["a"] == times

    uvloop.run(story())
