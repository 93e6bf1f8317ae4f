"""Jobs run on one other thread in order, and their results come back to the loop in order."""

from __future__ import annotations

import asyncio
import threading

import pytest

from podling.storage.sqlite.worker import Worker


async def test_a_job_runs_elsewhere_and_is_done_here() -> None:
    worker = Worker()
    assert await worker.call(threading.get_ident) != threading.get_ident()
    finished: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    worker.submit(lambda: 7, lambda result, error: finished.set_result(threading.get_ident()))
    assert await finished == threading.get_ident()
    worker.stop()


async def test_results_come_in_the_order_of_the_jobs() -> None:
    worker = Worker()
    done: list[int | None] = []
    for n in range(50):
        worker.submit(lambda n=n: n, lambda result, _: done.append(result))  # type: ignore[misc]
    await worker.call(lambda: None)
    assert done == list(range(50))
    worker.stop()


async def test_what_a_job_raises_is_raised_to_who_waits() -> None:
    worker = Worker()
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 // 0)
    assert await worker.call(lambda: "still there") == "still there"
    worker.stop()


async def test_jobs_already_in_are_done_before_the_end() -> None:
    worker = Worker()
    before_the_end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    worker.submit(lambda: None, lambda *_: before_the_end.set_result(None))
    worker.stop()
    await before_the_end


async def test_a_waiter_may_be_cancelled() -> None:
    worker = Worker()
    ran = threading.Event()
    async with asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(worker.call(ran.set))
        await asyncio.sleep(0)
        waiter.cancel()
    await worker.call(lambda: None)
    assert ran.is_set()
    worker.stop()


def test_a_loop_that_ended_is_left_alone() -> None:
    """A program that forgot to close its store ends without a traceback of the thread."""
    threads: list[threading.Thread] = []
    loop_ended, next_job = threading.Event(), threading.Event()

    async def forget() -> None:
        worker = Worker()
        threads.append(await worker.call(threading.current_thread))
        worker.submit(loop_ended.wait, lambda *_: None)
        worker.submit(next_job.set, lambda *_: None)

    asyncio.run(forget())
    loop_ended.set()
    threads[0].join(timeout=10)
    assert not threads[0].is_alive()
    assert not next_job.is_set()
