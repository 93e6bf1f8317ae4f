"""`PortWire`: port-forward over WebSocket, with two channels for each port, 2i for data and 2i+1 for errors.

The server's first message on each channel is the port, as two bytes, least significant first. There is one
connection for each port and no half close: the port's connection lasts as long as the WebSocket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire
from podling.streaming.wire import Answer, Event, Opened

NAMES = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "")


class PortWire(ChannelWire):
    """The server's side. A data stream carries the same headers as one opened over SPDY."""

    def __init__(self, subprotocol: str, ports: Sequence[int]) -> None:
        super().__init__(SUBPROTOCOLS[subprotocol], client=False, readable=range(0, 2 * len(ports), 2))
        self._ports = ports

    def start(self) -> list[Event]:
        events: list[Event] = []
        for i, port in enumerate(self._ports):
            for channel, kind in ((2 * i + 1, "error"), (2 * i, "data")):
                events.append(Opened(channel, _headers(kind, port, i)))
                events.append(Answer(b"".join(self._message(channel, port.to_bytes(2, "little")))))
        return events


def _headers(kind: str, port: int, request: int) -> Mapping[str, str]:
    return {"streamtype": kind, "port": str(port), "requestid": str(request)}
