"""SPDY/3.1 as a conversation between two sides, and against bytes nobody should send."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.streaming.spdy import frames
from podling.streaming.spdy.connection import MAX_STREAMS, SpdyWire
from podling.streaming.spdy.frames import ResetStatus, Type
from podling.streaming.spdy.headers import HeaderWriter
from podling.streaming.wire import (
    Answer,
    Answered,
    Data,
    Ended,
    Event,
    Farewell,
    Opened,
    ProtocolError,
    Reset,
)

if TYPE_CHECKING:
    from unit.streaming.conftest import Feed

STDIN = {"streamtype": "stdin"}


def pair() -> tuple[SpdyWire, SpdyWire]:
    return SpdyWire(client=True), SpdyWire(client=False)


def without_answers(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, Answer)]


def answers(events: list[Event]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Answer))


def test_a_conversation(feed: Feed) -> None:
    client, server = pair()
    stream, opening = client.open(STDIN)
    said = opening + b"".join(client.data(stream, b"hello")) + client.end(stream)

    heard = feed(server, said)
    assert without_answers(heard) == [Opened(1, STDIN), Data(1, b"hello"), Ended(1)]
    assert feed(client, answers(heard)) == [Answered(1)]

    back = b"".join(server.data(1, b"world")) + server.end(1)
    assert feed(client, back) == [Data(1, b"world"), Ended(1)]
    assert server.data(1, b"more") == ()
    assert feed(server, client.farewell()) == [Farewell(final=False)]


def test_ids_of_client_and_server_are_odd_and_even() -> None:
    client, server = pair()
    assert [client.open({})[0], client.open({})[0], server.open({})[0]] == [1, 3, 2]


def test_a_ping_comes_back_and_the_echo_of_ours_does_not(feed: Feed) -> None:
    _, server = pair()
    theirs, ours = frames.numbered(Type.PING, 7), frames.numbered(Type.PING, 2)
    assert feed(server, theirs + ours) == [Answer(theirs)]


def test_a_reset_stream_is_dropped_and_its_late_bytes_are_passed_over(feed: Feed) -> None:
    client, server = pair()
    stream, opening = client.open(STDIN)
    feed(server, opening)
    late = b"".join(client.data(stream, b"late"))
    assert without_answers(feed(server, client.reset(stream) + late)) == [Reset(1)]
    assert server.data(1, b"x") == ()
    assert server.end(1) == b""


def test_a_stream_may_be_opened_already_ended(feed: Feed) -> None:
    opening = frames.syn_stream(1, HeaderWriter().write(STDIN), frames.FLAG_FIN)
    assert without_answers(feed(SpdyWire(client=False), opening)) == [Opened(1, STDIN), Ended(1)]


def test_a_one_way_stream_is_not_answered(feed: Feed) -> None:
    server = SpdyWire(client=False)
    opening = frames.syn_stream(1, HeaderWriter().write(STDIN), frames.FLAG_UNIDIRECTIONAL)
    assert feed(server, opening) == [Opened(1, STDIN)]
    assert server.data(1, b"x") == ()


def test_settings_and_window_updates_are_passed_over(feed: Feed) -> None:
    said = frames.numbered(Type.SETTINGS, 0) + frames.numbered(Type.WINDOW_UPDATE, 1, b"\x7f\xff\xff\xff")
    assert feed(SpdyWire(client=False), said) == []


def test_a_payload_larger_than_a_frame_is_cut() -> None:
    client, server = pair()
    stream, opening = client.open(STDIN)
    payload = bytes(frames.MAX_DATA + 10)
    heard = server.receive(opening + b"".join(client.data(stream, payload)))
    assert sum(len(event.data) for event in heard if isinstance(event, Data)) == len(payload)


def test_streams_above_the_limit_are_refused() -> None:
    client, server = pair()
    for _ in range(MAX_STREAMS):
        server.receive(client.open({})[1])
    stream, opening = client.open({})
    assert server.receive(opening) == [Answer(frames.reset(stream, ResetStatus.REFUSED_STREAM))]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("version", b"\x80\x02\x00\x01\x00\x00\x00\x0a" + bytes(10)),
        ("unknown type", b"\x80\x03\x00\x63\x00\x00\x00\x00"),
        ("data on stream 0", b"\x00\x00\x00\x00\x00\x00\x00\x01x"),
        ("ping of a wrong size", frames.control(Type.PING, b"12345")),
        ("short SYN_STREAM", frames.control(Type.SYN_STREAM, b"123")),
        ("oversized control frame", b"\x80\x03\x00\x01\x00\xff\xff\xff"),
        ("stream 0", frames.syn_stream(0, HeaderWriter().write({}))),
        ("our own id", frames.syn_stream(2, HeaderWriter().write({}))),
        ("headers that are no zlib", frames.syn_stream(1, b"garbage")),
    ],
)
def test_what_no_spdy_peer_says_is_a_protocol_error(feed: Feed, fault: str, said: bytes) -> None:
    with pytest.raises(ProtocolError):
        feed(SpdyWire(client=False), said)


def test_a_stream_opened_twice_is_a_protocol_error() -> None:
    writer, server = HeaderWriter(), SpdyWire(client=False)
    server.receive(frames.syn_stream(1, writer.write({})))
    with pytest.raises(ProtocolError, match="twice"):
        server.receive(frames.syn_stream(1, writer.write({})))


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_raise_only_the_declared_error(data: bytes, client: bool) -> None:
    with suppress(ProtocolError):
        SpdyWire(client=client).receive(data)


control_frames = st.builds(
    frames.control, st.sampled_from(Type), st.binary(max_size=24), st.integers(min_value=0, max_value=255)
)


@given(st.lists(control_frames, max_size=6))
def test_random_frames_raise_only_the_declared_error(said: list[bytes]) -> None:
    with suppress(ProtocolError):
        SpdyWire(client=False).receive(b"".join(said))


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(min_size=1, max_size=50)), max_size=20), st.data())
def test_whatever_is_said_is_heard_however_it_is_cut(
    words: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    client, server = pair()
    opened = [client.open({"streamtype": str(i)}) for i in range(3)]
    said = b"".join(opening for _, opening in opened)
    for index, word in words:
        said += b"".join(client.data(opened[index][0], word))
    cut = data.draw(st.integers(0, len(said)))
    heard = server.receive(said[:cut]) + server.receive(said[cut:])
    for index, (stream, _) in enumerate(opened):
        received = b"".join(e.data for e in heard if isinstance(e, Data) and e.stream == stream)
        assert received == b"".join(word for i, word in words if i == index)
