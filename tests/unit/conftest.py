"""Time that nobody waits for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

import pytest


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
