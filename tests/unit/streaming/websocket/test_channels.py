"""Kubernetes' WebSocket channels: v5 with half close, v4, the older forms, base64; port-forward over v4, each
channel saying its port first."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import FrameProtocol, Opcode

from podling.streaming.websocket.channels import MAX_TEXT, SUBPROTOCOLS, ChannelWire, PortWire
from podling.streaming.wire import Answer, Data, Ended, Event, Farewell, Opened, ProtocolError

if TYPE_CHECKING:
    from unit.streaming.conftest import Feed

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
BASE64 = "v4.base64.channel.k8s.io"


def wires(name: str) -> tuple[ChannelWire, ChannelWire]:
    protocol = SUBPROTOCOLS[name]
    return ChannelWire(protocol, client=True), ChannelWire(protocol, client=False)


def message(payload: bytes | str) -> bytes:
    """A client's message."""
    return bytes(FrameProtocol(True, []).send_data(payload, fin=True))


@pytest.mark.parametrize("name", SUBPROTOCOLS)
def test_a_conversation(feed: Feed, name: str) -> None:
    client, server = wires(name)
    stdin, _ = client.open({"streamtype": "stdin"})
    assert feed(server, b"".join(client.data(stdin, b"\x00\xffhello"))) == [Data(0, b"\x00\xffhello")]
    assert feed(client, b"".join(server.data(1, b"out") + server.data(3, b"err"))) == [
        Data(1, b"out"),
        Data(3, b"err"),
    ]


def test_all_channels_are_open_from_the_start() -> None:
    names = [event.headers["streamtype"] for event in wires(V4)[1].start() if isinstance(event, Opened)]
    assert names == ["stdin", "stdout", "stderr", "error", "resize"]


def test_the_greeting_is_an_empty_message_on_its_channel() -> None:
    server = ChannelWire(SUBPROTOCOLS[V4], client=False, greeting="stdout")
    assert server.start()[-1] == Answer(b"\x82\x01\x01")


def test_only_v5_can_end_stdin(feed: Feed) -> None:
    """R-EPH-6: half close is said, never inferred."""
    client, server = wires(V5)
    assert feed(server, client.end(0)) == [Ended(0)]
    assert wires(V4)[0].end(0) == b""
    assert feed(wires(V4)[1], message(b"\xff\x00")) == []


@pytest.mark.parametrize("payload", [b"\xff", b"\xff\x09", b"\x01to stdout", b"\x63unknown", b"\x00", b""])
def test_messages_that_mean_nothing_are_passed_over(feed: Feed, payload: bytes) -> None:
    assert feed(wires(V5)[1], message(payload)) == []


def test_nothing_is_heard_on_a_channel_after_its_end(feed: Feed) -> None:
    assert feed(wires(V5)[1], message(b"\xff\x00") + message(b"\x00late")) == [Ended(0)]


def test_a_fragmented_message_keeps_its_channel(feed: Feed) -> None:
    sender = FrameProtocol(True, [])
    said = bytes(sender.send_data(b"\x00one ", fin=False)) + bytes(sender.send_data(b"two", fin=True))
    assert feed(wires(V4)[1], said) == [Data(0, b"one two")]


def test_pings_and_closes_are_answered(feed: Feed) -> None:
    sender = FrameProtocol(True, [])
    heard = feed(wires(V4)[1], bytes(sender.ping(b"hi")) + bytes(sender.close(1000)))
    assert heard == [Answer(b"\x8a\x02hi"), Answer(b"\x88\x02\x03\xe8"), Farewell(final=True)]


def test_the_close_frame_is_sent_once() -> None:
    server = wires(V4)[1]
    assert server.farewell() == b"\x88\x02\x03\xe8"
    assert server.farewell() == b""


@pytest.mark.parametrize("length", [0, 1, 124, 125, 126, 65534, 65535, 70000])
def test_messages_of_every_length_form(length: int) -> None:
    client, server = wires(V4)
    data = bytes(length)
    heard = client.receive(b"".join(server.data(1, data)))
    assert b"".join(event.data for event in heard if isinstance(event, Data)) == data


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("unmasked", b"\x82\x01\x00"),
        ("reserved bit", b"\xc2\x81\0\0\0\0\0"),
        ("unknown opcode", b"\x83\x81\0\0\0\0\0"),
        ("long ping", b"\x89\xfe\x00\x80\0\0\0\0"),
        ("lone continuation", b"\x80\x81\0\0\0\0\0"),
        ("close of one byte", b"\x88\x81\0\0\0\0\0"),
    ],
)
def test_what_no_client_says_is_a_protocol_error(feed: Feed, fault: str, said: bytes) -> None:
    with pytest.raises(ProtocolError):
        feed(wires(V4)[1], said)


@pytest.mark.parametrize("text", ["0=", "0*", "0" + "A" * (MAX_TEXT + 1)])
def test_a_base64_message_that_is_none_is_a_protocol_error(text: str) -> None:
    with pytest.raises(ProtocolError):
        wires(BASE64)[1].receive(message(text))


@given(st.binary(max_size=200), st.sampled_from(sorted(SUBPROTOCOLS)), st.booleans())
def test_random_bytes_raise_only_the_declared_error(data: bytes, name: str, client: bool) -> None:
    with suppress(ProtocolError):
        ChannelWire(SUBPROTOCOLS[name], client=client).receive(data)


masked_frames = st.builds(
    lambda op, fin, data: bytes(FrameProtocol(True, [])._serialize_frame(op, data, fin)),
    st.sampled_from(Opcode),
    st.booleans(),
    st.binary(max_size=125),
)


@given(st.lists(masked_frames, max_size=6), st.sampled_from(sorted(SUBPROTOCOLS)))
def test_random_frames_raise_only_the_declared_error(said: list[bytes], name: str) -> None:
    with suppress(ProtocolError):
        ChannelWire(SUBPROTOCOLS[name], client=False).receive(b"".join(said))


@given(
    st.lists(st.binary(min_size=1, max_size=60), max_size=10),
    st.sampled_from(sorted(SUBPROTOCOLS)),
    st.data(),
)
def test_whatever_is_said_is_heard_however_it_is_cut(
    words: list[bytes], name: str, data: st.DataObject
) -> None:
    client, server = wires(name)
    said = b"".join(chunk for word in words for chunk in client.data(0, word))
    cut = data.draw(st.integers(0, len(said)))
    heard: list[Event] = server.receive(said[:cut]) + server.receive(said[cut:])
    assert b"".join(event.data for event in heard if isinstance(event, Data)) == b"".join(words)


def test_each_port_has_a_data_and_an_error_stream_that_say_the_port_first() -> None:
    opened, said = [], []
    for event in PortWire("v4.channel.k8s.io", [80, 8443]).start():
        if isinstance(event, Opened):
            opened.append((event.stream, *event.headers.values()))
        elif isinstance(event, Answer):
            said.append(event.data)
    assert opened == [
        (1, "error", "80", "0"),
        (0, "data", "80", "0"),
        (3, "error", "8443", "1"),
        (2, "data", "8443", "1"),
    ]
    assert said == [
        b"\x82\x03\x01P\x00",
        b"\x82\x03\x00P\x00",
        b"\x82\x03\x03\xfb\x20",
        b"\x82\x03\x02\xfb\x20",
    ]


def test_of_a_port_forward_only_data_channels_are_listened_to(feed: Feed) -> None:
    client = FrameProtocol(True, [])
    said = b"".join(bytes(client.send_data(p, fin=True)) for p in (b"\x00a", b"\x01b", b"\x02c", b"\x04d"))
    assert feed(PortWire("v4.channel.k8s.io", [80, 81]), said) == [Data(0, b"a"), Data(2, b"c")]
