"""Which protocol an upgrade request gets: SPDY with an `X-Stream-Protocol-Version`, or a WebSocket
subprotocol.

The first protocol in the client's order that is also served is used, as in Kubernetes. Pure; the caller
answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from podling.streaming.websocket.frames import accept_key

SPDY = "SPDY/3.1"
PROTOCOL_VERSION = "X-Stream-Protocol-Version"
REPLAYED = "Podling-Replay"
"""In the answer to an attach that shows all that its container has printed: nothing need be joined to it."""


class RequestHeaders(Protocol):
    """A multi-valued map of headers, such as aiohttp's."""

    def get(self, name: str, default: str, /) -> str: ...
    def getall(self, name: str, default: list[str], /) -> list[str]: ...


class Accepted(NamedTuple):
    """`protocol` is the stream protocol or WebSocket subprotocol; `headers` are those of the 101 answer."""

    protocol: str
    websocket: bool
    headers: Mapping[str, str]


class Unacceptable(Exception):
    """No upgrade; carries the answer to send instead."""

    def __init__(self, status: int, message: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = list(headers)


def negotiate(headers: RequestHeaders, *, spdy: Sequence[str], websocket: Sequence[str]) -> Accepted:
    """`spdy` and `websocket` are the protocols served; a WebSocket client that names none gets "" if it is
    among them. Raises Unacceptable.
    """
    asked = headers.get("Upgrade", "").strip().lower()
    if "upgrade" not in (word.lower() for word in listed(headers, "Connection")) or not asked:
        raise Unacceptable(400, "unable to upgrade: missing upgrade headers in request")
    if asked == "websocket":
        return _websocket(headers, websocket)
    if asked != SPDY.lower():
        raise Unacceptable(400, "unable to upgrade: missing upgrade headers in request")
    return _spdy(headers, spdy)


def listed(headers: RequestHeaders, name: str) -> list[str]:
    """A list header's values, over however many lines."""
    return [value.strip() for line in headers.getall(name, []) for value in line.split(",") if value.strip()]


def _spdy(headers: RequestHeaders, served: Sequence[str]) -> Accepted:
    offered = listed(headers, PROTOCOL_VERSION)
    if not offered:
        raise Unacceptable(400, f"unable to upgrade: {PROTOCOL_VERSION} is required")
    for protocol in offered:
        if protocol in served:
            return Accepted(
                protocol, False, {"Connection": "Upgrade", "Upgrade": SPDY, PROTOCOL_VERSION: protocol}
            )
    why = f"client supports [{' '.join(offered)}], server accepts [{' '.join(served)}]"
    raise Unacceptable(
        403,
        f"unable to upgrade: unable to negotiate protocol: {why}",
        [("X-Accepted-Stream-Protocol-Versions", protocol) for protocol in served],
    )


def _websocket(headers: RequestHeaders, served: Sequence[str]) -> Accepted:
    key = headers.get("Sec-WebSocket-Key", "")
    if headers.get("Sec-WebSocket-Version", "").strip() != "13" or not key:
        raise Unacceptable(400, "unable to upgrade: not a WebSocket version 13 request")
    answer = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Accept": accept_key(key.strip()),
    }
    offered = listed(headers, "Sec-WebSocket-Protocol")
    for protocol in offered:
        if protocol in served:
            return Accepted(protocol, True, answer | {"Sec-WebSocket-Protocol": protocol})
    if not offered and "" in served:
        return Accepted("", True, answer)
    raise Unacceptable(400, f"unable to upgrade: unsupported WebSocket subprotocols [{' '.join(offered)}]")
