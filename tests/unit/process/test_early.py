"""A coroutine that begins without an event loop, and goes on in one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Coroutine
from typing import Any

import pytest

from podling.process.early import (
    ENDING,
    event_loop,
    hold_signals,
    is_in_loop,
    release_signals,
    run,
    within,
)


def ran(work: Coroutine[Any, Any, Any]) -> Any:
    """What it returns; `in_loop` runs the rest as commands do."""

    async def rest_of(rest: Awaitable[Any]) -> Any:
        return await rest

    return run(work, lambda rest: asyncio.run(rest_of(rest)))


def test_it_enters_a_loop_where_it_needs_one() -> None:
    async def inner() -> list[bool]:
        stood = [is_in_loop()]
        await event_loop()
        await event_loop()
        await asyncio.sleep(0)
        return [*stood, is_in_loop()]

    async def outer() -> list[bool]:
        return [is_in_loop(), *await inner(), is_in_loop()]

    assert ran(outer()) == [False, False, True, True]


def test_without_need_no_loop_is_entered() -> None:
    async def work() -> str:
        async with within(0):
            return "done"

    def refuse(rest: Awaitable[str]) -> str:
        raise AssertionError("a loop is entered")

    assert run(work(), refuse) == "done"


def test_what_it_raises_is_raised_on_both_sides() -> None:
    async def work(*, enters: bool) -> None:
        if enters:
            await event_loop()
        raise KeyError("lost")

    for enters in (False, True):
        with pytest.raises(KeyError, match="lost"):
            ran(work(enters=enters))


def test_in_the_loop_it_can_be_cancelled_and_has_its_time() -> None:
    said: list[str] = []

    async def work() -> None:
        await event_loop()
        with pytest.raises(TimeoutError):
            async with within(0):
                await asyncio.Event().wait()
        said.append("too late")
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        try:
            await asyncio.Event().wait()
        finally:
            said.append("cancelled")

    with pytest.raises(asyncio.CancelledError):
        ran(work())
    assert said == ["too late", "cancelled"]


def test_a_signal_before_the_loop_is_answered_in_it() -> None:
    """Whoever has begun something can end it; who does not want to wait asks twice."""
    usual = {number: signal.getsignal(number) for number in ENDING}

    async def work() -> list[Any]:
        hold_signals()
        signal.raise_signal(signal.SIGTERM)
        after_one = [signal.getsignal(number) for number in ENDING]
        await event_loop()
        loop, come = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, come.set)
        release_signals()
        await asyncio.wait_for(come.wait(), 20)
        return after_one

    try:
        assert ran(work()) == [signal.SIG_DFL] * len(ENDING)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def test_what_is_ignored_stays_so() -> None:
    """As with nohup."""

    async def work() -> None:
        hold_signals()

    usual = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        ran(work())
        assert {signal.getsignal(number) for number in ENDING} == {signal.SIG_IGN}
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
