"""Processes by pidfd: their end is an event, whoever's children they are."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from podling.process.programs import Process, command_line, ended, processes, spawn

SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))
from podling.process.programs import limit_as_given, raise_limit
limit = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]
seen = [raise_limit(), limit()]
with limit_as_given():
    seen.append(limit())
print(*seen, limit())
"""


def _spawn(script: str, log: Path) -> Process:
    return spawn(["sh", "-c", script], {"PATH": os.environ["PATH"], "GREETING": "hello"}, log)


async def test_output_is_appended_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    await _spawn("echo $GREETING; echo no >&2", log).exited()
    assert log.read_text() == "before\nhello\nno\n"


async def test_nothing_that_was_handed_down_to_us_stays_open_in_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    process = _spawn("sleep 100", tmp_path / "log")
    os.close(writing)
    try:
        assert select.select([reading], [], [], 10)[0], "somebody still has the other end"
    finally:
        os.close(reading)
        await process.kill()


async def test_a_child_is_reaped(tmp_path: Path) -> None:
    process = _spawn("true", tmp_path / "log")
    await process.exited()
    assert not Path(f"/proc/{process.pid}").exists()


async def test_it_ends_on_term(tmp_path: Path) -> None:
    process = _spawn("exec sleep 1000", tmp_path / "log")
    await process.terminate(60)
    assert command_line(process.pid) == []


async def test_what_ignores_term_is_killed(tmp_path: Path) -> None:
    process = _spawn("trap '' TERM; echo ready; while :; do sleep 1000; done", tmp_path / "log")
    await process.terminate(0)
    assert command_line(process.pid) == []


async def test_two_may_wait_for_the_same_end(tmp_path: Path) -> None:
    process = _spawn("exec sleep 1000", tmp_path / "log")
    async with asyncio.TaskGroup() as group:
        group.create_task(process.exited())
        group.create_task(process.exited())
        await asyncio.sleep(0)
        await process.kill()


async def test_a_signal_to_what_has_ended_does_nothing(tmp_path: Path) -> None:
    process = _spawn("true", tmp_path / "log")
    await process.exited()
    await process.kill()


async def test_what_can_be_read_is_told_before_the_end(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = _spawn("exec sleep 1000", tmp_path / "log")
        theirs.send(b"ready")
        assert await process.exited_or_readable(ours.fileno()) is False
        ours.recv(5)
        await process.kill()
        assert await process.exited_or_readable(ours.fileno()) is True


async def test_a_process_that_is_not_ours_is_waited_for_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    await _spawn("sleep 1000 & echo $!", log).exited()
    stranger = Process(int(log.read_text()))
    await stranger.terminate(60)
    assert command_line(stranger.pid) == []


def test_a_pid_nobody_has_is_refused() -> None:
    with pytest.raises(ProcessLookupError):
        Process(2**22)


def test_it_works_on_uvloop(tmp_path: Path) -> None:
    async def life() -> None:
        process = _spawn("exec sleep 1000", tmp_path / "log")
        await process.terminate(60)
        assert command_line(process.pid) == []

    uvloop.run(life())


def test_this_process_is_among_all_with_its_arguments() -> None:
    assert os.getpid() in processes()
    assert command_line(os.getpid())


def test_the_raised_limit_of_open_files_is_ours_alone() -> None:
    """In a process of its own: raised for us, as it was for what we start."""
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["512", "512", "256", "512"]


def test_a_program_that_is_waited_for_is_not_a_fork_of_podling() -> None:
    """Its pages are not copied, however many there are: the memory of the child is the program's own."""
    forks: list[bool] = []

    async def run() -> None:
        os.register_at_fork(after_in_parent=lambda: forks.append(True))
        done = await ended("sh", "-c", "cat; echo no >&2; exit 3", script="hello")
        assert (done.returncode, done.stdout, done.stderr) == (3, b"hello", b"no\n")

    uvloop.run(run())
    assert not forks
