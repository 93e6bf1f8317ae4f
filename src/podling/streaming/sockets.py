"""Socket pairs that connect a client and a server of this process, and TCP keepalive.

Both ends of a pair are driven as those of a TCP connection, so what works here works over the network, with
back-pressure and sudden ends.

Keepalive finds a peer that vanished without closing. It asks as often as Go's servers and clients do (the
kernel's default is after two hours), because a shell or a follower of a quiet log may be silent for hours.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio.trsock import TransportSocket
from collections.abc import Awaitable, Callable

IDLE = 15
"""Seconds of silence before the first keepalive probe."""
INTERVAL = 15
QUESTIONS = 9
"""Unanswered probes after which the peer counts as lost."""


def keep_alive(connection: socket.socket | TransportSocket) -> None:
    """Enable keepalive. On a listener it holds for every connection it accepts."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, INTERVAL)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, QUESTIONS)


Factory = Callable[[], asyncio.BaseProtocol]
Connect = Callable[[Factory], Awaitable[asyncio.Transport]]
"""Connects a client's protocol to a server of this process."""


async def connect_within(server: Factory, client: Factory) -> asyncio.Transport:
    """Connect the two protocols by a socket pair; returns the client's transport."""
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
