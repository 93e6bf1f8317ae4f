"""The only thread that uses SQLite. Jobs go in and results come back to the event loop, both in order.

The queue needs no bound: the store has at most one group of writes in it at a time.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Job = Callable[[], T]
Done = Callable[[T | None, Exception | None], None]


class Worker:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[Job[Any], Done[Any]] | None] = queue.SimpleQueue()
        # A daemon, so that a process that forgot to close its store can end: the acknowledged is durable.
        threading.Thread(target=self._run, name="podling-storage", daemon=True).start()

    def submit(self, job: Job[T], done: Done[T]) -> None:
        """Run `job` on the thread, then call `done` on the loop with its result or exception."""
        self._jobs.put((job, done))

    async def call(self, job: Job[T]) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()

        def done(result: Any, error: Exception | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        self.submit(job, done)
        return await answer

    def stop(self) -> None:
        """End the thread after the jobs it already has."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            result, error = _outcome(job)
            try:
                self._loop.call_soon_threadsafe(done, result, error)
            except RuntimeError:
                return  # the loop was closed: nobody is left to answer


def _outcome(job: Job[Any]) -> tuple[Any, Exception | None]:
    try:
        return job(), None
    except Exception as error:
        return None, error
