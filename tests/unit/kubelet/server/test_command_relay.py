"""Exec and attach between a client and a runtime: every way one of them can end, and what the other is
told.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from podling.kubelet.server import relay as command_relay
from podling.kubelet.server.relay import CommandStreams, Dialect, failure_text, leave, relay_command
from podling.streaming.session import Session, Stream
from podling.streaming.spdy.connection import SpdyWire

V4 = Dialect(resize=True, status=True)
V1 = Dialect(resize=False, status=False)
ALL = CommandStreams(stdin=True, stdout=True, stderr=True, tty=False)
TERMINAL = CommandStreams(stdin=True, stdout=True, stderr=True, tty=True)
SUCCESS = b'{"metadata":{},"status":"Success"}'
FAILURE = b'{"metadata":{},"status":"Failure","message":"it broke"}'


async def pair() -> tuple[Session, Session]:
    """The two ends of one SPDY connection: who opens streams, who accepts them."""
    loop = asyncio.get_running_loop()
    accepts = Session(SpdyWire(client=False))
    listener = await loop.create_server(lambda: accepts, "127.0.0.1", 0)
    address = listener.sockets[0].getsockname()
    _, opens = await loop.create_connection(lambda: Session(SpdyWire(client=True)), *address)
    listener.close()
    return opens, accepts


@dataclass
class Conversation:
    """A client and a runtime, with the relay between them. `runtime` has the streams the relay opened
    there.
    """

    client: Session
    runtime: Session
    relay: asyncio.Task[None]
    stopping: asyncio.Event
    kubelet_stops: asyncio.Event
    ours: dict[str, Stream] = field(default_factory=dict)
    theirs: dict[str, Stream] = field(default_factory=dict)

    def open(self, *types: str) -> None:
        self.ours = {name: self.client.open({"streamtype": name}) for name in types}

    async def meet(self, count: int) -> None:
        for _ in range(count):
            stream = await self.runtime.accept()
            assert stream is not None
            self.theirs[stream.headers["streamtype"]] = stream


async def all_of(stream: Stream) -> bytes:
    heard = b""
    while data := await stream.read():
        heard += data
    return heard


Converse = Callable[..., Awaitable[Conversation]]


@pytest.fixture
async def converse() -> AsyncIterator[Converse]:
    started: list[Conversation] = []

    async def begin(wanted: CommandStreams = ALL, dialect: Dialect = V4) -> Conversation:
        client, client_end = await pair()
        runtime_end, runtime = await pair()
        stopping, kubelet_stops = asyncio.Event(), asyncio.Event()
        relay = relay_command(client_end, runtime_end, wanted, dialect, kubelet_stops.wait, stopping.wait)
        started.append(Conversation(client, runtime, group.create_task(relay), stopping, kubelet_stops))
        return started[-1]

    async with asyncio.TaskGroup() as group:
        yield begin
        for conversation in started:
            conversation.client.drop()
            conversation.runtime.drop()


async def test_everything_is_passed_on_and_the_status_comes_last(converse: Converse) -> None:
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    await talk.ours["stdin"].write(b"in")
    talk.ours["stdin"].end()
    assert await all_of(talk.theirs["stdin"]) == b"in"
    assert talk.theirs["stdin"].ended
    for name, data in (("stdout", b"out"), ("stderr", b"err"), ("error", SUCCESS)):
        await talk.theirs[name].write(data)
    await talk.runtime.finish()
    heard = [await all_of(talk.ours[name]) for name in ("stdout", "stderr", "error")]
    assert heard == [b"out", b"err", SUCCESS]


async def test_a_terminal_has_no_stderr_but_sizes(converse: Converse) -> None:
    talk = await converse(TERMINAL)
    talk.open("error", "stdin", "stdout", "resize")
    await talk.meet(4)
    assert list(talk.theirs) == ["error", "stdin", "stdout", "resize"]
    await talk.ours["resize"].write(b'{"Width":80,"Height":24}')
    assert await talk.theirs["resize"].read() == b'{"Width":80,"Height":24}'


async def test_a_lost_client_ends_no_input(converse: Converse) -> None:
    """R-EPH-6: what it typed arrives; then the connection drops."""
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    await talk.ours["stdin"].write(b"typed")
    talk.client.close()
    assert await all_of(talk.theirs["stdin"]) == b"typed"
    assert not talk.theirs["stdin"].ended
    await talk.runtime.wait_lost()
    await talk.relay


async def test_a_lost_runtime_is_a_failure_told_to_the_client(converse: Converse) -> None:
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    await talk.theirs["stdout"].write(b"half")
    talk.runtime.close()
    assert await all_of(talk.ours["stdout"]) == b"half"
    status = json.loads(await all_of(talk.ours["error"]))
    assert (status["status"], status["reason"]) == ("Failure", "InternalError")


async def test_a_kubelet_that_stops_says_so_and_leaves_the_runtime_once_it_has_taken_all_streams(
    converse: Converse,
) -> None:
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    await talk.theirs["stdout"].write(b"half")
    talk.kubelet_stops.set()
    assert await all_of(talk.ours["stdout"]) == b"half"
    status = json.loads(await all_of(talk.ours["error"]))
    assert (status["reason"], status["message"]) == (
        "InternalError",
        "Internal error occurred: the kubelet is being stopped",
    )
    await talk.runtime.wait_lost()
    await talk.relay


async def test_a_relay_that_is_cancelled_while_it_leaves_has_left_the_runtime() -> None:
    relay_end, runtime = await pair()
    runtime.hold_peer()
    relay_end.open({"streamtype": "error"})
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(leave(relay_end))
        await asyncio.sleep(0)
        leaving.cancel()
    runtime.release_peer()
    async with asyncio.timeout(5):
        await runtime.wait_lost()


@pytest.mark.parametrize(
    ("status", "said"), [(SUCCESS, b""), (FAILURE, b"it broke"), (b"no JSON", b"no JSON")]
)
async def test_old_clients_are_told_in_words(converse: Converse, status: bytes, said: bytes) -> None:
    talk = await converse(dialect=V1)
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    await talk.theirs["error"].write(status)
    await talk.runtime.finish()
    assert await all_of(talk.ours["error"]) == said == failure_text(status)


async def test_a_client_that_leaves_before_its_streams_are_open_starts_nothing(converse: Converse) -> None:
    talk = await converse()
    talk.open("error", "stdin")
    await talk.client.finish()
    await talk.relay
    assert await talk.runtime.accept() is None


async def test_streams_nobody_asked_for_hold_nothing_up(converse: Converse) -> None:
    talk = await converse(CommandStreams(stdin=False, stdout=True, stderr=False, tty=False))
    talk.open("stdin", "nonsense", "error", "stdout")
    await talk.meet(2)
    for name in ("stdin", "nonsense", "stdout"):
        await talk.ours[name].write(bytes(1_000_000))
    await talk.theirs["error"].write(SUCCESS)
    await talk.runtime.finish()
    assert await all_of(talk.ours["error"]) == SUCCESS


async def test_a_runtime_that_takes_no_input_any_more_does_not_hold_up_the_end(converse: Converse) -> None:
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)

    async def flood() -> None:
        with pytest.raises(ConnectionError):
            while True:
                await talk.ours["stdin"].write(bytes(100_000))

    async with asyncio.TaskGroup() as group:
        group.create_task(flood())
        await talk.theirs["error"].write(FAILURE)
        for name in ("stdout", "stderr", "error"):
            talk.theirs[name].end()
        assert await all_of(talk.ours["error"]) == FAILURE
        talk.client.drop()


async def test_a_client_that_does_not_read_is_dropped_once_its_container_stops(
    converse: Converse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the command could not end by itself, nor the runtime stop it."""
    monkeypatch.setattr(command_relay, "STALLED", 0.05)
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    talk.client.hold_peer()

    async def speak() -> None:
        with pytest.raises(ConnectionError):
            while True:
                await talk.theirs["stdout"].write(bytes(100_000))

    async with asyncio.TaskGroup() as group:
        speaking = group.create_task(speak())
        done, _ = await asyncio.wait([speaking], timeout=0.3)
        assert not done, "a client may be slow while the container runs"
        talk.stopping.set()
    await talk.relay


async def test_a_client_that_reads_is_given_all_that_is_left_when_its_container_stops(
    converse: Converse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_relay, "STALLED", 0.05)
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    talk.stopping.set()
    async with asyncio.TaskGroup() as group:
        heard = group.create_task(all_of(talk.ours["stdout"]))
        for _ in range(100):
            await talk.theirs["stdout"].write(bytes(100_000))
        await talk.theirs["error"].write(SUCCESS)
        await talk.runtime.finish()
    assert len(heard.result()) == 10_000_000
    assert await all_of(talk.ours["error"]) == SUCCESS


async def test_a_client_that_reads_slowly_is_given_all_that_is_left(
    converse: Converse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes no room for the next bytes in a whole period, but takes some of those it has."""
    monkeypatch.setattr(command_relay, "STALLED", 0.2)
    talk = await converse()
    talk.open("error", "stdin", "stdout", "stderr")
    await talk.meet(4)
    talk.stopping.set()
    async with asyncio.TaskGroup() as group:
        speaking = group.create_task(_speak(talk, 4_000_000))
        heard = 0
        while heard < 4_000_000:
            heard += len(await talk.ours["stdout"].read())
            talk.client.hold_peer()
            if not speaking.done():
                await asyncio.wait([speaking], timeout=0.1)
            talk.client.release_peer()
    assert await all_of(talk.ours["error"]) == SUCCESS


async def _speak(talk: Conversation, size: int) -> None:
    for _ in range(size // 100_000):
        await talk.theirs["stdout"].write(bytes(100_000))
    await talk.theirs["error"].write(SUCCESS)
    await talk.runtime.finish()
