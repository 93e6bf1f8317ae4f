"""Connections to an API server, straight or through a proxy, for any asyncio protocol."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import SplitResult

from podling.client.proxies import PORTS
from podling.client.tunnel import tunnel

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

Factory = Callable[[], asyncio.BaseProtocol]


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


async def dial(route: Route, tls: ssl.SSLContext, factory: Factory) -> asyncio.Transport:
    """A connection whose protocol `factory` makes. `tls` is used for https servers. Raises OSError."""
    context = tls if route.server.scheme == "https" else None
    name = (route.server_name or route.host) if context else None
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            if route.proxy is None:
                transport, _ = await loop.create_connection(
                    factory, route.host, route.port, ssl=context, server_hostname=name
                )
            else:
                through = await tunnel(route.proxy, route.host, route.port, route.proxy_tls)
                try:
                    protocol = factory()
                    if context is None:
                        through.set_protocol(protocol)
                        protocol.connection_made(through)
                        through.resume_reading()
                        transport = through
                    else:
                        found = await loop.start_tls(through, protocol, context, server_hostname=name)
                        assert found is not None
                        protocol.connection_made(found)
                        transport = found
                except BaseException:
                    through.abort()
                    raise
    except TimeoutError as error:
        raise OSError(f"{route.authority} does not take a connection") from error
    keep_alive(transport.get_extra_info("socket"))
    return transport


def keep_alive(found: socket.socket) -> None:
    """Have a peer that vanished be found."""
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            found.setsockopt(socket.IPPROTO_TCP, option, value)
