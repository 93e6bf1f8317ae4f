"""Long work lets the others on the loop run, and short work is not made longer."""

from __future__ import annotations

import asyncio
import time

import pytest

from podling.process import turns


@pytest.mark.parametrize(("seconds", "others"), [(turns.LONGEST * 0.9, 0), (turns.LONGEST, 1)])
async def test_only_a_long_turn_is_shared(
    monkeypatch: pytest.MonkeyPatch, seconds: float, others: int
) -> None:
    now, ran = 100.0, 0

    def other() -> None:
        nonlocal ran
        ran += 1

    monkeypatch.setattr(time, "monotonic", lambda: now)
    turn = turns.Turn()
    asyncio.get_running_loop().call_soon(other)
    now += seconds
    await turn.share()
    assert ran == others
    asyncio.get_running_loop().call_soon(other)
    await turn.share()
    assert ran == others, "the next turn has just begun"
