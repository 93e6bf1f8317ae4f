"""Streams over a real socket: what is written is read, nothing grows, every way of ending is seen for what it
is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from podling.streaming.session import UNREAD_HIGH, Session, Stream
from podling.streaming.spdy.connection import SpdyWire
from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire
from podling.streaming.websocket.tunnel import TunnelWire
from podling.streaming.wire import Disconnected, ProtocolError, Wire

if TYPE_CHECKING:
    from unit.streaming.conftest import Connect

STDIN = {"streamtype": "stdin"}
ONE_READ = 512 * 1024


def spdy() -> tuple[Wire, Wire]:
    return SpdyWire(client=True), SpdyWire(client=False)


def tunnel() -> tuple[Wire, Wire]:
    return TunnelWire(client=True), TunnelWire(client=False)


def v5() -> tuple[Wire, Wire]:
    protocol = SUBPROTOCOLS["v5.channel.k8s.io"]
    return ChannelWire(protocol, client=True), ChannelWire(protocol, client=False)


Wires = Callable[[], tuple[Wire, Wire]]

every_wire = pytest.mark.parametrize("wires", [spdy, tunnel, v5])


async def all_of(stream: Stream) -> bytes:
    heard = bytearray()
    while data := await stream.read():
        heard += data
    return bytes(heard)


async def taken(session: Session) -> Stream:
    """The next one that the peer opens."""
    stream = await session.accept()
    assert stream
    return stream


async def stdin_of(session: Session) -> Stream:
    while (stream := await session.accept()) is not None:
        if stream.headers == STDIN:
            return stream
    raise AssertionError("no stdin")


@pytest.mark.parametrize("wires", [spdy, tunnel])
async def test_whoever_opens_streams_learns_when_they_are_taken(connect: Connect, wires: Wires) -> None:
    ends = await connect(*wires())
    ends.server.hold_peer()
    for _ in range(3):
        ends.client.open(STDIN)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(ends.client.answered())
        await asyncio.sleep(0)
        assert not waiting.done()
        ends.server.release_peer()


@pytest.mark.parametrize("wires", [spdy, tunnel])
async def test_streams_opened_together_are_announced_together(
    connect: Connect, wires: Wires, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = await connect(*wires())
    written: list[bytes] = []
    monkeypatch.setattr(ends.client, "say", written.append)
    names = ["error", "stdin", "stdout"]
    opened = ends.client.open_all(*({"streamtype": name} for name in names))
    (announced,) = written
    ends.server.data_received(announced)
    theirs = [await taken(ends.server) for _ in names]
    assert [stream.headers["streamtype"] for stream in theirs] == names
    assert [stream.number for stream in theirs] == [stream.number for stream in opened]


@every_wire
async def test_nobody_waits_for_a_peer_that_is_lost_to_take_a_stream(connect: Connect, wires: Wires) -> None:
    ends = await connect(*wires())
    ends.server.hold_peer()
    ends.client.open(STDIN)
    ends.client.drop()
    async with asyncio.timeout(10):
        await ends.client.answered()


@every_wire
async def test_what_is_written_is_read_until_the_half_close(connect: Connect, wires: Wires) -> None:
    ends = await connect(*wires())
    ours = ends.client.open(STDIN)
    await ours.write(b"hello ")
    await ours.write(b"world")
    ours.end()
    theirs = await stdin_of(ends.server)
    assert await all_of(theirs) == b"hello world"
    assert theirs.ended


@pytest.mark.parametrize("wires", [spdy, tunnel])
async def test_either_side_writes_after_the_other_has_ended(connect: Connect, wires: Wires) -> None:
    ends = await connect(*wires())
    ours = ends.client.open(STDIN)
    ours.end()
    theirs = await stdin_of(ends.server)
    assert await theirs.read() == b""
    await theirs.write(b"still here")
    theirs.end()
    assert await all_of(ours) == b"still here"
    assert ends.server._streams == ends.client._streams == {}  # nothing is kept of a stream that is over


@every_wire
async def test_an_unread_stream_stops_its_writer_and_then_loses_nothing(
    connect: Connect, wires: Wires, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a reader is bounded, whatever the peer sends."""
    ends = await connect(*wires())
    ours, sent = ends.client.open(STDIN), bytes(range(256)) * 128
    held = asyncio.Event()
    hold = ends.server.hold_peer

    def hold_and_tell() -> None:
        hold()
        held.set()

    monkeypatch.setattr(ends.server, "hold_peer", hold_and_tell)

    async def flood() -> None:
        for _ in range(256):
            await ours.write(sent)
        ours.end()

    async with asyncio.TaskGroup() as group:
        writing = group.create_task(flood())
        theirs = await stdin_of(ends.server)
        await held.wait()
        assert not writing.done()
        assert ends.server._unread <= UNREAD_HIGH + ONE_READ
        assert await all_of(theirs) == sent * 256


@every_wire
async def test_a_dropped_connection_is_no_end_of_input(connect: Connect, wires: Wires) -> None:
    """R-EPH-6."""
    ends = await connect(*wires())
    await ends.client.open(STDIN).write(b"typed")
    theirs = await stdin_of(ends.server)
    assert await theirs.read() == b"typed"
    ends.client.drop()
    assert await theirs.read() == b""
    assert not theirs.ended
    with pytest.raises(Disconnected):
        await theirs.write(b"anyone?")
    assert await ends.server.accept() is None or wires is v5


@every_wire
async def test_what_arrived_before_a_reset_is_still_read(connect: Connect, wires: Wires) -> None:
    ends = await connect(*wires())
    ours = ends.client.open(STDIN)
    await ours.write(b"last words")
    await ends.client.finish()
    theirs = await stdin_of(ends.server)
    assert await all_of(theirs) == b"last words"
    assert not theirs.ended


@every_wire
async def test_finish_delivers_everything_to_a_slow_reader(connect: Connect, wires: Wires) -> None:
    ends = await connect(*wires())
    ours, sent = ends.client.open(STDIN), bytes(3 * 1024 * 1024)
    async with asyncio.TaskGroup() as group:

        async def say_and_go() -> None:
            await ours.write(sent)
            await ends.client.finish()

        group.create_task(say_and_go())
        theirs = await stdin_of(ends.server)
        assert await all_of(theirs) == sent
        await ends.server.finish()
    assert ends.client.lost
    assert ends.server.lost


@every_wire
async def test_garbage_ends_the_connection_and_names_the_fault(connect: Connect, wires: Wires) -> None:
    ends = await connect(*wires())
    ends.client.say(b"\xff" * 40)
    await ends.server.wait_lost()
    assert isinstance(ends.server.fault, ProtocolError)


async def test_a_stream_nobody_reads_can_be_ignored_without_holding_up_the_others(connect: Connect) -> None:
    ends = await connect(*spdy())
    noise, ours = ends.client.open({"streamtype": "stdout"}), ends.client.open(STDIN)
    unwanted = await taken(ends.server)
    unwanted.ignore()
    async with asyncio.TaskGroup() as group:

        async def say() -> None:
            await noise.write(bytes(4 * UNREAD_HIGH))
            await ours.write(b"heard")
            ours.end()

        group.create_task(say())
        assert await all_of(await stdin_of(ends.server)) == b"heard"


async def test_a_reset_stream_leaves_the_others_alone(connect: Connect) -> None:
    ends = await connect(*spdy())
    first, second = ends.client.open({"streamtype": "error"}), ends.client.open(STDIN)
    first.reset()
    await second.write(b"on")
    second.end()
    gone = await taken(ends.server)
    assert await gone.read() == b""
    assert not gone.ended
    assert await all_of(await stdin_of(ends.server)) == b"on"
