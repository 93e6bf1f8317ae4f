"""Two connections made one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from podling.streaming.splice import Splice

End = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Spliced = tuple[End, End, Splice]


@pytest.fixture
async def spliced() -> AsyncIterator[Spliced]:
    """Two plain ends, with a splice between them: (reader, writer) each, and the splice."""
    loop = asyncio.get_running_loop()
    one, two = Splice.pair()

    async def connected(end: Splice) -> End:
        listener = await loop.create_server(lambda: end, "127.0.0.1", 0)
        streams = await asyncio.open_connection(*listener.sockets[0].getsockname())
        listener.close()
        return streams

    ends = await connected(one), await connected(two)
    yield *ends, one
    for _, writer in ends:
        writer.transport.abort()
    await one.done()


async def test_bytes_pass_both_ways(spliced: Spliced) -> None:
    (reader, writer), (other_reader, other_writer), _ = spliced
    writer.write(b"there")
    other_writer.write(b"back")
    assert await other_reader.readexactly(5) == b"there"
    assert await reader.readexactly(4) == b"back"


async def test_a_slow_end_holds_back_the_other(spliced: Spliced, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, writer), (other_reader, _), splice = spliced
    held = asyncio.Event()
    hold = splice.hold_peer

    def hold_and_tell() -> None:
        hold()
        held.set()

    monkeypatch.setattr(splice, "hold_peer", hold_and_tell)
    sent = bytes(range(256)) * 4096 * 32

    async def flood() -> None:
        writer.write(sent)
        await writer.drain()

    async with asyncio.TaskGroup() as group:
        group.create_task(flood())
        await held.wait()
        assert await other_reader.readexactly(len(sent)) == sent


@pytest.mark.parametrize("first", [0, 1])
async def test_when_one_end_closes_the_other_gets_what_was_sent_and_closes(
    spliced: Spliced, first: int
) -> None:
    *streams, splice = spliced
    streams[first][1].write(b"bye")
    streams[first][1].close()
    assert await streams[1 - first][0].read() == b"bye"
    streams[1 - first][1].close()
    await splice.done()


async def test_what_comes_before_the_other_end_is_there_waits_for_it() -> None:
    loop = asyncio.get_running_loop()
    one, two = Splice.pair()
    one.data_received(b"early")
    listener = await loop.create_server(lambda: two, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
    listener.close()
    assert await reader.readexactly(5) == b"early"
    writer.close()
    await two.wait_lost()
