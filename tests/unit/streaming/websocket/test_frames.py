"""RFC 6455 beside wsproto: both hear the same of random frames however they are cut, or both refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import FrameProtocol, Opcode, ParseFailed

from podling.streaming.websocket.frames import Piece, WebSocketCodec, _xor, accept_key
from podling.streaming.wire import Answer, Farewell, ProtocolError

Heard = list[tuple[str, bytes, bool]]


def test_the_accept_key_is_that_of_rfc_6455() -> None:
    """The example of RFC 6455, section 1.3."""
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def frame(opcode: int, is_last: bool, payload: bytes, mask: bytes, form: int) -> bytes:
    """`form` adds to how its length is written."""
    length = len(payload)
    form = max(form, 0 if length < 126 else 1 if length < 1 << 16 else 2)
    second = (0x80 if mask else 0) | (length if form == 0 else 125 + form)
    extended = b"" if form == 0 else length.to_bytes(2 if form == 1 else 8, "big")
    body = _xor(payload, mask, 0) if mask else payload
    return bytes(((0x80 if is_last else 0) | opcode, second)) + extended + mask + body


def of_podling(pieces: list[bytes], *, client: bool) -> Heard | None:
    """Messages joined as far as they came, and what was answered; None if it is refused."""
    codec, heard = WebSocketCodec(client=client), Heard()
    try:
        for piece in pieces:
            for event in codec.receive(piece):
                if isinstance(event, Piece):
                    assert event.first == (not heard or heard[-1][0] != "message" or heard[-1][2])
                    add(heard, event.data, event.last)
                elif isinstance(event, Answer):
                    heard.append(("answer", event.data[:1], True))
                else:
                    assert event == Farewell(final=True)
    except ProtocolError:
        return None
    return heard


def of_wsproto(said: bytes, *, client: bool) -> Heard | None:
    protocol, heard = FrameProtocol(client, []), Heard()
    protocol.receive_bytes(said)
    try:
        for found in protocol.received_frames():
            if found.opcode is Opcode.PING:
                heard.append(("answer", b"\x8a", True))
            elif found.opcode is Opcode.CLOSE:
                heard.append(("answer", b"\x88", True))
            elif found.opcode is not Opcode.PONG:
                payload = found.payload
                assert not isinstance(payload, tuple)
                add(heard, payload.encode() if isinstance(payload, str) else payload, found.message_finished)
    except ParseFailed:
        return None
    return heard


def add(heard: Heard, data: bytes, is_last: bool) -> None:
    """Answers may come between the pieces of a message: only these are joined that follow each other."""
    if heard and heard[-1][0] == "message" and not heard[-1][2]:
        data = heard.pop()[1] + data
    heard.append(("message", data, is_last))


PAYLOADS = st.one_of(
    st.binary(max_size=10),
    st.text(max_size=10).map(str.encode),
    st.integers(0, 5100).map(lambda code: code.to_bytes(2, "big") + b"bye"),
    st.sampled_from([125, 126, 127, 65535, 65536]).map(bytes),
)
FRAMES = st.tuples(
    st.sampled_from([*range(12), 0, 1, 2, 8, 9]), st.booleans(), PAYLOADS, st.sampled_from([0, 0, 0, 1, 2])
)


@given(st.lists(FRAMES, max_size=5), st.booleans(), st.booleans(), st.data())
def test_it_hears_as_wsproto_hears(
    frames: list[tuple[int, bool, bytes, int]], client: bool, right: bool, data: st.DataObject
) -> None:
    mask = b"abcd" if client != right else b""
    said = b"".join(frame(opcode, last, payload, mask, form) for opcode, last, payload, form in frames)
    wanted = of_wsproto(said, client=client)
    at = data.draw(st.integers(0, len(said)))
    assert of_podling([said], client=client) == wanted
    assert of_podling([said[:at], said[at:]], client=client) == wanted
    if len(said) < 200:
        assert of_podling([said[i : i + 1] for i in range(len(said))], client=client) == wanted


@given(st.lists(st.binary(max_size=300), max_size=4), st.booleans())
def test_wsproto_hears_what_it_says(messages: list[bytes], client: bool) -> None:
    codec, peer = WebSocketCodec(client=client), FrameProtocol(not client, [])
    for message in messages:
        peer.receive_bytes(b"".join(codec.message(message[:1], message[1:])))
    codec.receive(bytes(peer.ping(b"x")))
    peer.receive_bytes(codec.close())
    found = [(one.opcode, one.payload) for one in peer.received_frames()]
    assert [payload for opcode, payload in found if opcode is Opcode.BINARY] == messages
    assert [opcode for opcode, _ in found][-1] is Opcode.CLOSE
    assert codec.close() == b""


@pytest.mark.parametrize("at", range(5))
def test_a_mask_goes_on_where_it_was(at: int) -> None:
    data = bytes(range(11))
    assert _xor(data[:at], b"abcd", 0) + _xor(data[at:], b"abcd", at) == _xor(data, b"abcd", 0)
