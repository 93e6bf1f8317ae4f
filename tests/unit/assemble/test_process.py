"""The process around the parts."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys

import pytest

from podling.assemble.process import COLLECT_AFTER, COLLECT_STARTED, Main, run, started, tune
from podling.machine.start import DamagedError, StartError


def test_a_thread_that_computes_soon_gives_way_to_the_loop(as_it_was: None) -> None:
    """The loop waits so long several times a request: Python's own 5 ms would come to 20 ms and more."""
    tune()
    assert sys.getswitchinterval() <= 0.0002
    assert gc.get_threshold()[0] == COLLECT_AFTER


def test_what_is_there_after_the_start_is_not_gone_through_again(as_it_was: None) -> None:
    held = [[number] for number in range(COLLECT_STARTED[0])]
    started()
    assert gc.get_freeze_count() > len(held) and gc.get_threshold() == COLLECT_STARTED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_runs_until_a_signal_and_then_ignores_sigterm(as_it_was: None, number: signal.Signals) -> None:
    async def main(told_to_stop: asyncio.Event) -> None:
        os.kill(os.getpid(), number)
        await told_to_stop.wait()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN

    run(main)


def failing(*errors: Exception) -> Main:
    async def fail(error: Exception) -> None:
        raise error

    async def main(told_to_stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(fail(errors[0]))
            async with asyncio.TaskGroup() as inner:
                for error in errors[1:]:
                    inner.create_task(fail(error))

    return main


def test_of_several_reasons_not_to_start_the_first_is_told(as_it_was: None) -> None:
    with pytest.raises(StartError) as refused:
        run(failing(DamagedError("this came first"), StartError("that followed")))
    assert (str(refused.value), refused.value.exit_code) == ("this came first", 4)


def test_a_bug_beside_them_is_not_hidden(as_it_was: None) -> None:
    with pytest.raises(ExceptionGroup) as failed:
        run(failing(StartError("why"), KeyError("a bug")))
    assert failed.group_contains(KeyError)
