"""A terminal at this end of a session is as it was before, however the session ends."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import termios
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from podling.process.http_client import Headers
from podling.remote import session
from podling.remote.recording import Unrecorded
from podling.remote.streams import Command, Wanted
from podling.streaming.session import Session
from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire

LOCAL_FLAGS = 3
V5 = SUBPROTOCOLS["v5.channel.k8s.io"]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The terminal of standard input; what is drawn goes nowhere."""
    master, slave = pty.openpty()
    monkeypatch.setattr(session, "STDIN", slave)
    monkeypatch.setattr("podling.remote.terminal.write", lambda descriptor, data: None)
    yield slave
    # The thread that reads it ends with it.
    os.close(master)
    os.close(slave)


@pytest.fixture
async def ends() -> AsyncIterator[tuple[Session, Session]]:
    """Of a connection: this one, and that of the node."""
    loop = asyncio.get_running_loop()
    here, there = socket.socketpair()
    _, near = await loop.create_unix_connection(lambda: Session(ChannelWire(V5, client=True)), sock=here)
    _, far = await loop.create_unix_connection(lambda: Session(ChannelWire(V5, client=False)), sock=there)
    yield near, far
    for one in (near, far):
        one.close()
        await one.wait_lost()


def is_cooked(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[LOCAL_FLAGS] & termios.ICANON)


def lose(far: Session, running: asyncio.Task[session.Conversation]) -> None:
    far.close()


def cancel(far: Session, running: asyncio.Task[session.Conversation]) -> None:
    """What TERM does to a command."""
    running.cancel()


@pytest.mark.parametrize("end", [lose, cancel])
async def test_a_terminal_is_as_before_when_the_network_is_lost_and_when_the_command_is_ended(
    end: Callable[[Session, asyncio.Task[session.Conversation]], None],
    typed: int,
    ends: tuple[Session, Session],
) -> None:
    before = termios.tcgetattr(typed)
    wanted = Wanted(stdin=True, stderr=False, tty=True)
    command = Command(ends[0], Headers(), wanted)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(session.converse(command, raw=True, recording=Unrecorded()))
        # It is raw before anything is waited for.
        await asyncio.sleep(0)
        assert not is_cooked(typed)
        end(ends[1], running)
    assert termios.tcgetattr(typed) == before
    assert running.cancelled() or running.result().ended is None


async def test_what_was_seen_is_recorded_also_when_the_program_is_killed_at_once(
    typed: int, ends: tuple[Session, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    class Recorded(Unrecorded):
        def shown(self, data: bytes, *, raw: bool = False) -> None:
            events.append("recorded")

    async def printed() -> bytes:
        return b"hello"

    def seen(descriptor: int, data: bytes) -> None:
        events.append("seen")
        ends[1].close()

    monkeypatch.setattr("podling.remote.terminal.write", seen)
    command = Command(ends[0], Headers(), Wanted(stdin=True, stderr=False, tty=True))
    async with asyncio.timeout(20):
        await session.converse(command, raw=True, recording=Recorded(), log=printed)
    assert events == ["recorded", "seen"]
