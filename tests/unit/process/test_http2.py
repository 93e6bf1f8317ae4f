"""What a client of gRPC says and hears over HTTP/2: bytes come, events follow; what cannot be is refused with
one error, and how bytes are cut into pieces changes nothing.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.process.hpack import HeaderError, decode, encode
from podling.process.http2 import (
    ACK,
    CANCEL,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW,
    INTERNAL,
    LONGEST_FRAME,
    NOT_BEGUN,
    PADDED,
    PING,
    PREFACE,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    UNAVAILABLE,
    UNKNOWN,
    USUAL_WINDOW,
    WINDOW_UPDATE,
    Ended,
    Event,
    Http2,
    Message,
    Pong,
    ProtocolError,
    Ready,
)

PATH = "/etcdserverpb.KV/Range"


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + content


def frames(data: bytes) -> list[tuple[int, int, int, bytes]]:
    found = []
    while data:
        end = 9 + int.from_bytes(data[:3])
        found.append((data[3], data[4], int.from_bytes(data[5:9]), data[9:end]))
        data = data[end:]
    return found


def message(content: bytes) -> bytes:
    return b"\0" + len(content).to_bytes(4) + content


def trailers(stream: int, *headers: tuple[str, str]) -> bytes:
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, encode(headers))


def begun() -> Http2:
    """Its first words are said."""
    made = Http2("etcd.test:2379", secure=False)
    made.take()
    return made


SUCCESS = (
    frame(HEADERS, END_HEADERS, 1, b"\x88" + encode([("content-type", "application/grpc")]))
    + frame(DATA, 0, 1, message(b"the answer"))
    + trailers(1, ("grpc-status", "0"), ("grpc-message", ""))
)
ANSWERED = [Message(1, b"the answer"), Ended(1, 0, "")]


def test_a_question_is_headers_and_a_message_that_ends_them() -> None:
    client = Http2("etcd.test:2379", secure=True)
    said = client.take()
    assert said.startswith(PREFACE)
    assert [one[0] for one in frames(said.removeprefix(PREFACE))] == [SETTINGS, WINDOW_UPDATE]
    assert client.ask(PATH, b"what", seconds=5) == 1
    head, body = frames(client.take())
    assert head[:3] == (HEADERS, END_HEADERS, 1)
    found = dict(decode(head[3]))
    assert (found[":method"], found[":scheme"], found[":path"]) == ("POST", "https", PATH)
    assert (found["te"], found["grpc-timeout"]) == ("trailers", "5000m")
    assert body == (DATA, END_STREAM, 1, message(b"what"))
    assert client.ask(PATH, b"more", more_follows=True) == 3
    assert frames(client.take())[1] == (DATA, 0, 3, message(b"more"))


@pytest.mark.parametrize("size", [1, 2, 7, len(SUCCESS)])
def test_an_answer_may_come_in_pieces(size: int) -> None:
    client = begun()
    client.ask(PATH, b"", seconds=5)
    events: list[Event] = []
    for at in range(0, len(SUCCESS), size):
        events += client.receive(SUCCESS[at : at + size])
    assert events == ANSWERED


def test_a_message_and_headers_may_be_of_several_frames() -> None:
    client = begun()
    client.ask(PATH, b"")
    whole, block = (
        message(b"long") + message(b"next"),
        encode([("grpc-status", "5"), ("grpc-message", "none")]),
    )
    came = frame(DATA, PADDED, 1, b"\x02" + whole[:7] + b"\0\0") + frame(DATA, 0, 1, whole[7:])
    came += frame(HEADERS, END_STREAM, 1, block[:5]) + frame(CONTINUATION, END_HEADERS, 1, block[5:])
    assert client.receive(came) == [Message(1, b"long"), Message(1, b"next"), Ended(1, 5, "none")]


def test_a_refusal_says_why() -> None:
    client = begun()
    client.ask(PATH, b"")
    said = trailers(1, ("grpc-status", "14"), ("grpc-message", "etcdserver: no leader%21"))
    assert client.receive(said) == [Ended(1, UNAVAILABLE, "etcdserver: no leader!")]


@pytest.mark.parametrize("code", ["\u00b2", "9" * 5000, "-1", ""])
def test_a_status_that_is_no_code_is_unknown(code: str) -> None:
    client = begun()
    client.ask(PATH, b"")
    assert client.receive(trailers(1, ("grpc-status", code))) == [Ended(1, UNKNOWN, "")]


def test_what_a_server_asks_is_answered() -> None:
    client = begun()
    settings = INITIAL_WINDOW.to_bytes(2) + (10).to_bytes(4)
    assert client.receive(frame(SETTINGS, 0, 0, settings) + frame(PING, 0, 0, b"12345678")) == [Ready()]
    assert frames(client.take()) == [(SETTINGS, ACK, 0, b""), (PING, ACK, 0, b"12345678")]
    client.ping()
    assert frames(client.take()) == [(PING, 0, 0, bytes(8))]
    assert client.receive(frame(PING, ACK, 0, bytes(8)) + frame(SETTINGS, ACK, 0)) == [Pong()]


def test_no_more_is_sent_than_the_other_side_takes() -> None:
    client = begun()
    sent = message(b"x" * 200_000)
    client.ask(PATH, sent[5:], seconds=5)
    pieces = [one for one in frames(client.take()) if one[0] == DATA]
    assert max(len(one[3]) for one in pieces) == LONGEST_FRAME
    assert sum(len(one[3]) for one in pieces) == USUAL_WINDOW
    # The connection's window and the stream's, each of them.
    client.receive(frame(WINDOW_UPDATE, 0, 0, (1 << 20).to_bytes(4)))
    assert client.take() == b""
    client.receive(frame(WINDOW_UPDATE, 0, 1, (100).to_bytes(4)))
    more = frames(client.take())
    assert [len(one[3]) for one in more] == [100]
    client.receive(frame(SETTINGS, 0, 0, INITIAL_WINDOW.to_bytes(2) + (1 << 20).to_bytes(4)))
    rest = [one for one in frames(client.take()) if one[0] == DATA]
    assert rest[-1][1] == END_STREAM
    assert b"".join(one[3] for one in pieces + more + rest) == sent


def test_what_was_not_begun_is_told_apart() -> None:
    client = begun()
    for _ in range(3):
        client.ask(PATH, b"", seconds=5)
    refused, reset = (
        frame(RST_STREAM, 0, stream, code.to_bytes(4)) for stream, code in ((1, REFUSED_STREAM), (3, 2))
    )
    one, two = client.receive(refused + reset)
    assert isinstance(one, Ended) and (one.status, NOT_BEGUN in one.message) == (UNAVAILABLE, True)
    assert two == Ended(3, INTERNAL, "the stream was reset (2)")
    assert not client.is_closing
    (last,) = client.receive(frame(GOAWAY, 0, 0, (3).to_bytes(4) + bytes(4)))
    assert isinstance(last, Ended) and (last.stream, NOT_BEGUN in last.message) == (5, True)
    assert client.is_closing


def test_what_was_given_up_is_not_heard_any_more() -> None:
    client = begun()
    client.ask(PATH, b"", seconds=5)
    client.take()
    client.cancel(1)
    client.cancel(1)
    assert frames(client.take()) == [(RST_STREAM, 0, 1, CANCEL.to_bytes(4))]
    assert client.receive(SUCCESS) == []


@pytest.mark.parametrize(
    "came",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(DATA, 0, 1, b"\x01\0\0\0\x01x"),
        frame(DATA, PADDED, 1, b"\x09"),
        frame(HEADERS, END_HEADERS, 1, b"\xbe"),
        frame(HEADERS, END_HEADERS, 1, b"\0\x05gr"),
        frame(HEADERS, 0, 1, b"") + frame(PING, 0, 0, bytes(8)),
        frame(CONTINUATION, 0, 1, b""),
        frame(HEADERS, 0, 1, b"") + 2 * frame(CONTINUATION, 0, 1, bytes(10_000)),
    ],
    ids=["http1", "compressed", "padding", "table", "short", "interrupted", "stray", "endless"],
)
def test_what_is_no_answer_is_refused(came: bytes) -> None:
    client = begun()
    client.ask(PATH, b"")
    with pytest.raises(ProtocolError):
        client.receive(came)


@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 255), st.integers(0, 4), st.binary(max_size=40)))
)
def test_anything_else_that_comes_raises_nothing_else(came: list[tuple[int, int, int, bytes]]) -> None:
    client = begun()
    client.ask(PATH, b"")
    with suppress(ProtocolError):
        client.receive(b"".join(frame(*one) for one in came))
    client.take()


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=300))))
def test_headers_are_read_as_they_were_written(headers: list[tuple[str, str]]) -> None:
    found = decode(encode(headers))
    assert [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found] == [
        (name.encode(), value.encode()) for name, value in headers
    ]


CODED = {
    # From RFC 7541, appendix C.4 and C.6.
    "f1e3c2e5f23a6ba0ab90f4ff": "www.example.com",
    "a8eb10649cbf": "no-cache",
    "25a849e95bb8e8b4bf": "custom-value",
    "d07abe941054d444a8200595040b8166e082a62d1bff": "Mon, 21 Oct 2013 20:13:21 GMT",
    "9d29ad171863c78f0b97c8e9ae82ae43d3": "https://www.example.com",
}


@pytest.mark.parametrize(("coded", "text"), CODED.items())
def test_characters_are_of_huffmans_code(coded: str, text: str) -> None:
    data = bytes.fromhex(coded)
    assert decode(b"\0\x01a" + bytes((0x80 | len(data),)) + data) == (("a", text),)


@pytest.mark.parametrize("coded", ["ffffffff", "f1e3c2e5f23a6ba0ab90f400"])
def test_a_code_that_is_none_is_refused(coded: str) -> None:
    data = bytes.fromhex(coded)
    with pytest.raises(HeaderError):
        decode(b"\0\x01a" + bytes((0x80 | len(data),)) + data)
