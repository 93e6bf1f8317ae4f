"""Time that nobody waits for, time that must not grow faster than what is asked for, and files on no disk."""

from __future__ import annotations

import asyncio
import gc
import os
import selectors
import shutil
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

MEMORY, MEMORY_NEEDED = Path("/dev/shm"), 1 << 30
"""A file system that waits for no disk, and the bytes that must be free there."""


def pytest_configure() -> None:
    """Thousands of tests make and remove small files: on a disk that is half of their time."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


class JumpingSelector(selectors.DefaultSelector):
    """When nothing else can happen it is the time of the next timer."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing can happen any more"
            self.passed += timeout
        return ready


def jumping_loop() -> asyncio.AbstractEventLoop:
    selector = JumpingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.passed  # type: ignore[method-assign]
    return loop


@pytest.fixture
def in_no_time() -> Callable[[Coroutine[Any, Any, None]], None]:
    """`in_no_time(story())`: its timers, backoffs and timeouts pass at once, by the loop's own time."""

    def run(story: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=jumping_loop) as runner:
            runner.run(story)

    return run


Linear = Callable[[Callable[[int], Any], Callable[[Any], object], int], None]
MOST_GROWTH = 2.8
"""How many times as long as expected four times the input may take: what is linear has 1, or 2 where only the
smaller input fits the processor's cache; a square has 4."""
NOISE = 0.002
"""Seconds below which nothing can be said about growth."""
TRIES = 6


def _seconds(run: Callable[[Any], object], value: Any) -> float:
    began = time.process_time()
    run(value)
    return time.process_time() - began


def _growth(small: float, large: float) -> float:
    return max(large, 4 * NOISE) / max(small, NOISE) / 4


@pytest.fixture
def assert_linear() -> Linear:
    """`assert_linear(make, run, n)`: to run what is made of 4 x n things takes four times as long as of n.

    Whatever else the machine does only adds to a time, so the least of several is the work's own, and a
    growth that is small enough needs no second look.
    """

    def check(make: Callable[[int], Any], run: Callable[[Any], object], n: int) -> None:
        small, large = make(n), make(4 * n)
        run(make(1))
        gc.disable()
        try:
            least = _seconds(run, small), _seconds(run, large)
            for _ in range(TRIES):
                if _growth(*least) <= MOST_GROWTH:
                    return
                least = min(least[0], _seconds(run, small)), min(least[1], _seconds(run, large))
        finally:
            gc.enable()
        raise AssertionError(f"{n} things take {least[0]:.4f} s, four times as many {least[1]:.4f} s")

    return check
