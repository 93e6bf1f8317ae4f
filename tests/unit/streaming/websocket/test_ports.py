"""Port-forward over WebSocket v4: two channels a port, each saying its port first."""

from __future__ import annotations

from wsproto.frame_protocol import FrameProtocol

from podling.streaming.websocket.ports import PortWire
from podling.streaming.wire import Answer, Data, Opened


def test_each_port_has_a_data_and_an_error_stream_that_say_the_port_first():
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


def test_only_data_channels_are_listened_to(feed):
    client = FrameProtocol(True, [])
    said = b"".join(bytes(client.send_data(p, fin=True)) for p in (b"\x00a", b"\x01b", b"\x02c", b"\x04d"))
    assert feed(PortWire("v4.channel.k8s.io", [80, 81]), said) == [Data(0, b"a"), Data(2, b"c")]
