"""The work of the controllers in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from podling.client.workqueue import WorkQueue
from podling.controllers.controller import queue_metrics


@dataclass
class Idle:
    """A controller nobody runs."""

    name: str
    queue: WorkQueue[str] = field(default_factory=WorkQueue)

    async def reconcile(self, key: str) -> None:
        raise AssertionError("nobody runs it")


async def test_what_waits_what_came_and_what_failed() -> None:
    busy = Idle("busy")
    for key in ("a", "b", "a"):
        busy.queue.add(key)
    busy.queue.done(await busy.queue.get())
    busy.queue.retry("a")
    busy.queue.close()
    found = {
        (sample.name, sample.labels["name"]): sample.value
        for metric in queue_metrics([busy, Idle("idle")])
        for sample in metric.samples
    }
    assert found == {
        ("workqueue_depth", "busy"): 1,
        ("workqueue_depth", "idle"): 0,
        ("workqueue_adds_total", "busy"): 2,
        ("workqueue_adds_total", "idle"): 0,
        ("workqueue_retries_total", "busy"): 1,
        ("workqueue_retries_total", "idle"): 0,
    }
