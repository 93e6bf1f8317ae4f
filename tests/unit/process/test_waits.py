"""Waiting for an event or a time, for a turn on the loop, and after failures."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from queue import SimpleQueue

import pytest

from podling.process.waits import (
    LONGEST_TURN,
    SHORT,
    Aside,
    Backoff,
    OneATurn,
    Turn,
    aside,
    done_for,
    is_aside,
    long_work,
    woken,
)


async def test_who_waits_can_be_ended_just_when_the_event_comes() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(woken(event, 60))
        await asyncio.sleep(0)
        event.set()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.mark.parametrize("seconds", [0, 60, None])
async def test_who_waits_for_what_has_come_goes_on(seconds: float | None) -> None:
    event = asyncio.Event()
    event.set()
    assert await woken(event, seconds)


@pytest.mark.parametrize("seconds", [-1, 0, 0.001])
async def test_who_waits_in_vain_is_told_so(seconds: float) -> None:
    assert not await woken(asyncio.Event(), seconds)


@pytest.mark.parametrize(("seconds", "others"), [(LONGEST_TURN * 0.9, 0), (LONGEST_TURN, 1)])
async def test_only_a_long_turn_is_shared(
    monkeypatch: pytest.MonkeyPatch, seconds: float, others: int
) -> None:
    now, ran = 100.0, 0

    def other() -> None:
        nonlocal ran
        ran += 1

    monkeypatch.setattr(time, "monotonic", lambda: now)
    turn = Turn()
    asyncio.get_running_loop().call_soon(other)
    now += seconds
    await turn.share()
    assert ran == others
    asyncio.get_running_loop().call_soon(other)
    await turn.share()
    assert ran == others, "the next turn has just begun"


async def test_long_work_of_many_is_done_one_a_turn() -> None:
    """In order; who has gone meanwhile costs no turn, and nobody waits when nobody works."""
    turns, gate = 0, OneATurn()
    done: list[tuple[str, int]] = []

    async def work(name: str) -> None:
        await gate.wait()
        done.append((name, turns))

    async with asyncio.TaskGroup() as tasks:
        first, *_, gone, last = [tasks.create_task(work(name)) for name in "abcde"]
        for _ in range(10):
            await asyncio.sleep(0)
            turns += 1
            if turns == 1:
                assert first.done() and not last.done()
                gone.cancel()
    assert [name for name, _ in done] == ["a", "b", "c", "e"]
    assert len({turn for _, turn in done}) == len(done)
    await asyncio.sleep(0)
    async with asyncio.TaskGroup() as tasks:
        alone = tasks.create_task(work("f"))
        await asyncio.sleep(0)
        assert alone.done()


async def test_flows_take_turns_with_long_work() -> None:
    """A hundred pieces of one make another wait for one of them."""
    gate = OneATurn()
    done: list[str] = []

    async def work(name: str) -> None:
        done_for.set(name)
        await gate.wait()
        done.append(name)

    async with asyncio.TaskGroup() as tasks:
        for name in [*["noisy"] * 100, "quiet", "quiet"]:
            tasks.create_task(work(name))
    assert done[:6] == ["noisy", "noisy", "quiet", "noisy", "quiet", "noisy"] and len(done) == 102


async def test_calls_have_turns_of_their_own_as_tasks_do() -> None:
    """In one queue with those that wait; a call that found nothing to do takes no turn."""
    turns, gate = 0, OneATurn()
    done: list[tuple[str, int]] = []

    def call(name: str, found: bool) -> bool:
        if found:
            done.append((name, turns))
        return found

    async def work(name: str) -> None:
        await gate.wait()
        done.append((name, turns))

    gate.call(partial(call, "a", True))
    gate.call(partial(call, "b", False))
    gate.call(partial(call, "c", True))
    assert not done
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work("d"))
        for _ in range(6):
            await asyncio.sleep(0)
            turns += 1
    assert [name for name, _ in done] == ["a", "c", "d"]
    assert len({turn for _, turn in done}) == 3


@pytest.mark.parametrize("without_end", [False, True])
async def test_long_work_lets_short_work_pass(without_end: bool) -> None:
    """For as many turns as that takes; however much of it comes, a piece has its turn."""
    turns, gate = 0, OneATurn()
    done: list[int] = []

    def piece() -> bool:
        done.append(turns)
        return True

    for _ in range(3):
        gate.call(piece)
    gate.let_pass(2)
    for turns in range(1, 20):  # noqa: B007
        await asyncio.sleep(0)
        if without_end:
            gate.let_pass(2)
    assert done == ([5, 10, 15] if without_end else [3, 4, 5])


async def test_all_long_work_of_a_loop_has_one_queue() -> None:
    assert long_work() is long_work()


def test_another_loop_has_its_own() -> None:
    async def of_loop() -> OneATurn:
        return long_work()

    assert asyncio.run(of_loop()) is not asyncio.run(of_loop())


async def test_work_aside_knows_that_it_is() -> None:
    assert not is_aside()
    assert await aside(SHORT + 1, is_aside)
    assert not await aside(SHORT, is_aside)


def test_a_backoff_doubles_up_to_the_longest_and_begins_again_after_success() -> None:
    retries = Backoff(0.5, 3).begin()
    assert [retries.next() for _ in range(5)] == [0.5, 1, 2, 3, 3]
    retries.reset()
    assert retries.next() == 0.5


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 0.5), (3, 2), (4, 3), (10_000, 3)])
def test_the_delay_follows_from_the_failures(failures: int, seconds: float) -> None:
    assert Backoff(0.5, 3).after(failures) == seconds


class Times:
    """A timer for the thread beside the loop, which tells when it has been asked so often."""

    def __init__(self, *moments: float) -> None:
        self._moments = iter(moments)
        self.asked = 0
        self._changed = threading.Condition()

    def __call__(self) -> float:
        with self._changed:
            self.asked += 1
            self._changed.notify_all()
        return next(self._moments)

    def wait(self, asked: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.asked >= asked, 10)


class Held:
    """Work beside the loop that gives way as often as it is told to."""

    def __init__(self, beside: Aside) -> None:
        self._beside = beside
        self._orders: SimpleQueue[bool] = SimpleQueue()
        self._obeyed: SimpleQueue[bool] = SimpleQueue()

    def __call__(self) -> str:
        self._obeyed.put(True)
        while self._orders.get(timeout=10):
            self._beside.give_way()
            self._obeyed.put(True)
        return "done"

    def order(self, go_on: bool = True) -> None:
        self._orders.put(go_on)

    def wait(self) -> bool:
        """Until it has begun, or has given way once more."""
        return self._obeyed.get(timeout=10)


async def test_work_beside_the_loop_waits_for_the_turns_of_a_short_request() -> None:
    times = Times(0.0, 1.0)
    beside = Aside(times, longest_way=60)
    work = Held(beside)
    done = beside.run(work)
    assert work.wait()
    beside.hold(3)
    work.order()
    assert times.wait(1), "it has come to where it waits"
    for _ in range(3):
        assert times.asked == 1
        await asyncio.sleep(0)
    assert times.wait(2) and work.wait(), "it has been let go"
    work.order(False)
    assert await done == "done"


async def test_it_works_as_long_as_it_has_waited_before_it_waits_again() -> None:
    times = Times(10.0, 12.0, 13.9, 14.0, 14.5)
    beside = Aside(times, longest_way=0)
    work = Held(beside)
    done = beside.run(work)
    assert work.wait()
    for asked in (2, 3, 5):
        beside.hold(1)
        work.order()
        assert work.wait()
        assert times.asked == asked
    work.order(False)
    await done


async def test_what_does_nothing_is_not_held_and_the_loop_never_waits() -> None:
    times = Times()
    beside = Aside(times)
    assert await beside.run(lambda: 1) == 1
    await beside.run(lambda: None)
    beside.hold(1)
    beside.give_way()
    assert times.asked == 0


def test_a_loop_that_ends_meanwhile_holds_nothing() -> None:
    times = Times(0.0, 0.0, 1.0, 1.0)
    beside = Aside(times, longest_way=0.001)
    work = Held(beside)

    async def hold() -> None:
        beside.run(work)
        assert work.wait()
        asyncio.get_running_loop().call_soon(beside.hold, 10)
        await asyncio.sleep(0)

    asyncio.run(hold())
    for _ in range(3):
        work.order()
        assert work.wait()
    assert times.asked == 2, "it has waited once"
    work.order(False)
