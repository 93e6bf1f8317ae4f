"""Who is scheduled next (R-SYS-3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podling.scheduler.info import PodInfo
from podling.scheduler.queue import BACKOFF, NodeWent, PodLeft, SchedulingQueue, Waiting

Make = Callable[..., PodInfo]

FIT = frozenset(("NodeResourcesFit",))


def names(queue: SchedulingQueue, now: float = 0) -> list[str]:
    found = []
    while (waiting := queue.pop(now)) is not None:
        found.append(waiting.pod.uid)
    return found


def taken(queue: SchedulingQueue, now: float = 0) -> Waiting:
    waiting = queue.pop(now)
    assert waiting is not None
    return waiting


def test_by_priority_then_by_arrival(pod: Make) -> None:
    queue = SchedulingQueue()
    for name, priority in (("a", 0), ("b", 5), ("c", 5), ("d", -1)):
        queue.put(pod(name, priority=priority), 0)
    assert names(queue) == ["b", "c", "a", "d"]


def test_a_parked_pod_waits_for_a_change_that_may_help(pod: Make) -> None:
    queue = SchedulingQueue()
    queue.put(pod("p"), 0)
    queue.park(taken(queue), FIT, 0)
    assert names(queue, 100) == []
    queue.wake(NodeWent(), 100)
    assert names(queue, 100) == []
    queue.wake(PodLeft(pod("other"), {}), 100)
    assert names(queue, 100) == ["p"]


def test_nothing_is_woken_twice(pod: Make) -> None:
    queue = SchedulingQueue()
    queue.put(pod("p"), 0)
    queue.put(pod("p"), 0)
    queue.park(taken(queue), FIT, 0)
    for _ in range(2):
        queue.wake(PodLeft(pod("other"), {}), 100)
    assert names(queue, 100) == ["p"]


def test_a_pod_in_backoff_goes_after_all_active_ones(pod: Make) -> None:
    """Even when it is more important: it has just failed."""
    queue = SchedulingQueue()
    queue.put(pod("important", priority=9), 0)
    queue.park(taken(queue), FIT, 0)
    queue.put(pod("new"), 0)
    queue.wake(PodLeft(pod("other"), {}), 0.5)
    assert names(queue, 0.5) == ["new", "important"]


def test_once_its_backoff_is_over_it_goes_by_priority_again(pod: Make) -> None:
    queue = SchedulingQueue()
    queue.put(pod("important", priority=9), 0)
    queue.park(taken(queue), FIT, 0)
    queue.put(pod("new"), 0)
    queue.wake(PodLeft(pod("other"), {}), 0.5)
    assert names(queue, 1.0) == ["important", "new"]


def test_after_an_error_a_pod_waits_its_whole_backoff(pod: Make) -> None:
    queue = SchedulingQueue()
    queue.put(pod("p"), 0)
    queue.fail(taken(queue), 0)
    assert queue.due() == 1.0
    assert names(queue, 0.9) == []
    assert names(queue, 1.0) == ["p"]
    assert queue.due() is None


def test_a_parked_pod_is_tried_again_after_five_minutes(pod: Make) -> None:
    queue = SchedulingQueue()
    queue.put(pod("p"), 0)
    queue.park(taken(queue), FIT, 10)
    assert queue.due() == 310
    assert names(queue, 309) == []
    assert names(queue, 310) == ["p"]


def test_a_dropped_pod_is_gone_from_every_place(pod: Make) -> None:
    queue = SchedulingQueue()
    for name in ("parked", "failed"):
        queue.put(pod(name), 0)
    queue.park(taken(queue), FIT, 0)
    queue.fail(taken(queue), 0)
    queue.put(pod("active"), 0)
    for name in ("active", "parked", "failed"):
        queue.drop(name)
    assert len(queue) == 0
    assert names(queue, 1000) == []


def test_a_pod_dropped_while_it_was_tried_does_not_come_back(pod: Make) -> None:
    queue = SchedulingQueue()
    queue.put(pod("p"), 0)
    waiting = taken(queue)
    queue.drop("p")
    queue.fail(waiting, 0)
    assert names(queue, 100) == []


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (9000, 10)]
)
def test_backoff(attempts: int, seconds: float) -> None:
    assert BACKOFF.after(attempts) == seconds
