"""How a server is reached, and what every request to it says."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, urlencode

from podling.client.login import Shown
from podling.client.proxies import PORTS
from podling.process.tls import Reread

CONNECT_TIMEOUT = 10.0
"""Seconds until a server that does not take a connection counts as unreachable."""
PROBES = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPALIVE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,
}
"""Socket options by name, because no system has all: a peer that vanished is found within a minute."""

Query = Mapping[str, str] | Sequence[tuple[str, str]]


class Route(NamedTuple):
    """How a server is reached. `server` and `proxy` are URLs; `server_name` is the name in the server's
    certificate if it differs from the address; `proxy_tls` is for a proxy of https."""

    server: SplitResult
    server_name: str | None = None
    proxy: SplitResult | None = None
    proxy_tls: ssl.SSLContext | None = None

    @property
    def host(self) -> str:
        return self.server.hostname or ""

    @property
    def port(self) -> int:
        return self.server.port or PORTS[self.server.scheme]

    @property
    def authority(self) -> str:
        """Host and port as a request names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def name(self) -> str | None:
        """That the server's certificate must have; None where it shows none."""
        return (self.server_name or self.host) if self.server.scheme == "https" else None


class Wire(NamedTuple):
    """Further properties of a connection. `server_name` is the name in the server's certificate if it differs
    from the address; `proxy` is a URL, which may have user and password, and `trusting` whom one of https is
    believed; `headers` go with every request."""

    server_name: str | None = None
    proxy: SplitResult | None = None
    compressed: bool = True
    headers: tuple[tuple[str, str], ...] = ()
    trusting: Reread[ssl.SSLContext] | None = None

    def route(self, server: SplitResult) -> Route:
        """The way to the server at this URL."""
        tls = self.trusting.get() if self.trusting else None
        return Route(server, self.server_name, self.proxy, tls)

    def head(self, server: SplitResult, shown: Shown) -> list[tuple[str, str]]:
        """The headers of every request to it."""
        login = [("Authorization", shown.authorization)] if shown.authorization else []
        return [("Host", server.netloc), ("User-Agent", "podling"), *self.headers, *login]

    def accepted(self) -> list[tuple[str, str]]:
        """The headers of a request whose answer is read here."""
        return [("Accept", "application/json"), *([("Accept-Encoding", "gzip")] if self.compressed else [])]


PLAIN = Wire()


def target(server: SplitResult, path: str, query: Query) -> str:
    """What a request line names."""
    asked = "&".join(part for part in (server.query, urlencode(query)) if part)
    return (server.path + path or "/") + (f"?{asked}" if asked else "")


class Writable(Protocol):
    """A transport, or a writer of a stream."""

    def is_closing(self) -> bool: ...

    def write(self, data: bytes | bytearray, /) -> None: ...


def send(to: Writable, data: bytes | bytearray) -> None:
    """Raises ConnectionResetError, also where uvloop raises a RuntimeError: between the end of a connection
    and the moment it is told of."""
    if to.is_closing():
        raise ConnectionResetError("the connection has ended")
    to.write(data)


def keep_alive(found: socket.socket) -> None:
    """Have a peer that vanished be found."""
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            found.setsockopt(socket.IPPROTO_TCP, option, value)
