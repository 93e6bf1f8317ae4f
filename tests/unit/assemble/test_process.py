"""The process around the parts."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import platform
import signal
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podling.assemble.process import COLLECT_AFTER, COLLECT_STARTED, SLICE, Main, run, started, tune
from podling.machine.start import DamagedError, StartError
from untold import check_told


def test_a_thread_that_computes_soon_gives_way_to_the_loop(as_it_was: None) -> None:
    """The loop waits so long several times a request: Python's own 5 ms would come to 20 ms and more."""
    tune()
    assert sys.getswitchinterval() <= 0.0002
    assert gc.get_threshold()[0] == COLLECT_AFTER


def slice_of_this_thread() -> int:
    """Nanoseconds."""
    told = ctypes.create_string_buffer(56)
    ctypes.CDLL(None).syscall({"x86_64": 315, "aarch64": 275}[platform.machine()], 0, told, len(told), 0)
    asked: int = struct.unpack_from("Q", told.raw, 24)[0]
    return asked


def test_only_the_loop_is_due_sooner_than_others(as_it_was: None) -> None:
    """Not the threads it makes, which compute for long: a quiet client would wait for them."""
    usual = slice_of_this_thread()
    if not usual:
        pytest.skip("this kernel has no slices to ask for")
    tune()
    assert slice_of_this_thread() == SLICE < usual
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(slice_of_this_thread).result() == usual


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


def test_nothing_is_told_of_a_connection_that_was_given_up_as_it_was_made(
    as_it_was: None, caplog: pytest.LogCaptureFixture
) -> None:
    """uvloop tells of it if the task that connects is cancelled just before the server's part of the
    handshake is read."""

    async def main(told_to_stop: asyncio.Event) -> None:
        for message, why in (
            ("that", "unable to perform operation; the handler is closed"),
            ("a bug", "of ours"),
        ):
            context = {"message": message, "exception": RuntimeError(why)}
            asyncio.get_running_loop().call_exception_handler(context)

    run(main)
    assert [record.message for record in caplog.records] == ["a bug"]


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


FORGETS = """
import asyncio
from podling.assemble.process import run

async def fail():
    raise ValueError("nobody waits")

async def main(told_to_stop):
    task = asyncio.create_task(fail())
    await asyncio.wait([task])

run(main)
"""


def test_an_error_that_nobody_waits_for_is_found_in_its_log(tmp_path: Path) -> None:
    log = tmp_path / "podling.log"
    with log.open("w") as stream:
        subprocess.run([sys.executable, "-c", FORGETS], stderr=stream, check=True)
    with pytest.raises(AssertionError, match=r"never retrieved(?s:.)*nobody waits"):
        check_told(log)
    check_told(tmp_path / "none.log")
