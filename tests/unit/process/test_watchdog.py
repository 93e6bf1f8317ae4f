"""What holds the loop is told of, with the request it was for, and counted."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import uvloop

from podling.apiserver.observe.metrics import Metrics
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, request_info
from podling.process import watchdog
from podling.process.metrics import Exposition, stall_metrics
from podling.process.watchdog import LINES_APART, ProcessorTimer, Stalls, Watchdog


class Asked(msgspec.Struct):
    method: str
    path: str


class Noted(Stalls):
    """Tells the loop of each stall."""

    def __init__(self) -> None:
        super().__init__()
        self.each: list[float] = []
        self._loop = asyncio.get_running_loop()
        self.came = asyncio.Event()

    def observe(self, seconds: float) -> None:
        super().observe(seconds)
        self.each.append(seconds)
        self._loop.call_soon_threadsafe(self.came.set)


def spin(seconds: float) -> None:
    """Of processor time, which is what the watchdog looks by, however busy the machine is."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def keep_the_interpreter() -> None:
    """Calls that let no other thread run."""
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        sum(itertools.repeat(1, 15_000_000))


async def answer(request: Asked, hold: Callable[[], object]) -> float:
    """The seconds it took."""
    await asyncio.sleep(0)
    began = time.monotonic()
    hold()
    return time.monotonic() - began


def stalled(hold: Callable[[], object], request: Asked) -> tuple[float, float]:
    """(how long it was, how long the watchdog says it was)."""

    async def story() -> tuple[float, float]:
        stalls = Noted()
        with watchdog.watching(stalls):
            took = await answer(request, hold)
            async with asyncio.timeout(10):
                await stalls.came.wait()
        return took, stalls.each[0]

    return uvloop.run(story())


@pytest.mark.parametrize("hold", [lambda: spin(0.3), keep_the_interpreter])
def test_what_computes_too_long_is_named_with_its_request(
    caplog: pytest.LogCaptureFixture, hold: Callable[[], object]
) -> None:
    took, told = stalled(hold, Asked("GET", "/api/v1/pods"))
    # It knows of what it has itself seen, which is less where the machine lets neither thread run.
    assert watchdog.LIMIT <= told <= took + 0.5
    lines = [record.getMessage() for record in caplog.records if record.name == "podling.process.watchdog"]
    # On a busy machine it may have been told of while it was held, too.
    line = lines[-1]
    assert line.startswith("the loop was held for ")
    assert "'GET' '/api/v1/pods': " in line
    assert "test_watchdog.py" in line


def test_what_waits_too_long_is_told_of_while_it_does(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "LONG", 0.05)
    monkeypatch.setattr(watchdog, "LONGEST_SLEEP", 0.1)
    stalled(lambda: threading.Event().wait(0.6), Asked("GET", "/x"))
    first, last = [
        record.getMessage() for record in caplog.records if record.name == "podling.process.watchdog"
    ]
    assert first.startswith("the loop is being held by 'GET' '/x': ")
    assert last.startswith("the loop was held for ")


def test_a_path_is_told_of_in_part_and_in_ascii(caplog: pytest.LogCaptureFixture) -> None:
    stalled(lambda: spin(0.3), Asked("GET", "/\n\x1b[2J" + "x" * 100_000))
    lines = [record.getMessage() for record in caplog.records if record.name == "podling.process.watchdog"]
    assert lines and not any("\n" in line or "\x1b" in line or len(line) >= 2000 for line in lines)


class Loop:
    """Turns at once."""

    def call_soon_threadsafe(self, call: Callable[..., None], *arguments: Any) -> None:
        call(*arguments)


def test_a_loop_that_turns_in_time_is_not_told_of() -> None:
    stalls = Stalls()
    Watchdog(Loop(), stalls)._look(time.monotonic(), None)  # type: ignore[arg-type]
    assert not sum(stalls.counts)


def test_a_loop_that_turns_as_soon_as_it_is_asked_but_was_held_until_then_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever keeps the interpreter keeps the watchdog, too, from asking in time."""
    stalls, request = Stalls(), Asked("GET", "/late")
    Watchdog(Loop(), stalls)._look(time.monotonic() - 0.3, sys._getframe())  # type: ignore[arg-type]
    assert sum(stalls.counts) == 1
    assert f"'{request.method}' '{request.path}': " in caplog.text


def test_it_watches_from_the_first_turn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, made = threading.Event(), threading.Event()

    class Late(ProcessorTimer):
        def __init__(self, interval: float) -> None:
            asked.wait(0.1)
            super().__init__(interval)
            made.set()

    monkeypatch.setattr(watchdog, "ProcessorTimer", Late)

    async def story() -> None:
        with watchdog.watching():
            assert made.is_set()

    uvloop.run(story())


def test_there_are_few_lines_however_many_stalls(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    dog = Watchdog(Loop(), Stalls())  # type: ignore[arg-type]
    for _ in range(100):
        dog.tell(0.2, "somebody", at_once=False)
    now += LINES_APART
    dog.tell(0.2, "somebody", at_once=False)
    assert [record.getMessage() for record in caplog.records] == [
        "the loop was held for 0.20 s by somebody",
        "the loop was held for 0.20 s by somebody (99 more since the last was told of)",
    ]


def test_the_watchdog_ends_with_the_loop() -> None:
    async def story() -> None:
        with watchdog.watching():
            await asyncio.sleep(0)

    uvloop.run(story())
    for thread in threading.enumerate():
        if thread.name == "watchdog":
            thread.join(watchdog.LONGEST_SLEEP + 5)
            assert not thread.is_alive()


def test_the_timer_runs_by_processor_time() -> None:
    timer = ProcessorTimer(0.02)
    try:
        began = time.monotonic()
        timer.wait(0.1)
        assert time.monotonic() - began >= 0.1, "nothing was used"
        used = time.process_time()
        while time.process_time() - used < 0.05:
            pass
        timer.wait(60)
        assert time.monotonic() - began < 60
    finally:
        timer.close()


def test_stalls_are_a_histogram() -> None:
    stalls = Stalls()
    for seconds in (0.15, 0.3, 0.4, 100):
        stalls.observe(seconds)
    (family,) = stall_metrics(stalls)
    found = {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples}
    assert found["podling_loop_stall_seconds_bucket", "0.2"] == 1
    assert found["podling_loop_stall_seconds_bucket", "0.5"] == 3
    assert found["podling_loop_stall_seconds_bucket", "30.0"] == 3
    assert found["podling_loop_stall_seconds_count", None] == 4
    assert found["podling_loop_stall_seconds_sum", None] == pytest.approx(100.85)


async def test_whatever_serves_metrics_serves_it() -> None:
    asked, info = Request("GET", "/metrics"), request_info("GET", "/metrics", {})
    at = datetime(2026, 1, 2, tzinfo=UTC)
    answer = await Metrics(()).serve(RequestContext(asked, "", at, {}, info=info))
    assert answer is not None and isinstance(answer.body, bytes)
    assert b"podling_loop_stall_seconds_count" in answer.body
    assert b"podling_loop_stall_seconds_count" in Exposition(process=True).text()
