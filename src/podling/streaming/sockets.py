"""Connections within this process: a pair of sockets where the network and its TLS would be.

Both ends are driven as those of any connection are, so what works here works over the network, back-pressure
and sudden ends included.

Whether a silent peer is still there: asked by TCP itself, as often as Go's servers and clients ask, so
that what Kubernetes would notice is noticed here.

A peer that lost its network says no goodbye, and a shell or a follower of a quiet log may rightly be silent
for hours. The kernel's own default would ask after two.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio.trsock import TransportSocket
from collections.abc import Awaitable, Callable

IDLE = 15
"""Seconds of silence before the first question."""
INTERVAL = 15
QUESTIONS = 9
"""Unanswered ones that make a peer lost."""


def keep_alive(connection: socket.socket | TransportSocket) -> None:
    """Of a listener: for all that it will accept."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, INTERVAL)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, QUESTIONS)


Factory = Callable[[], asyncio.BaseProtocol]
Connect = Callable[[Factory], Awaitable[asyncio.Transport]]
"""Connects a client's protocol with a server of this process."""


async def connect_within(server: Factory, client: Factory) -> asyncio.Transport:
    """The client's end."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    try:
        await loop.connect_accepted_socket(server, theirs)
    except BaseException:
        ours.close()
        theirs.close()
        raise
    transport, _ = await loop.create_unix_connection(client, sock=ours)
    return transport
