"""The work queue: a key waits once, is worked on once at a time, and no change is missed."""

from __future__ import annotations

import asyncio

import pytest

from podling.client.workqueue import LONGEST_DELAY, WorkQueue, retry_delay, work


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
    ("failures", "delay"), [(1, 0.005), (2, 0.01), (5, 0.08), (100, LONGEST_DELAY), (10_000, LONGEST_DELAY)]
)
def test_retry_delay(failures: int, delay: float) -> None:
    assert retry_delay(failures) == pytest.approx(delay)


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
