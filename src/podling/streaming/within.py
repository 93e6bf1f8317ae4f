"""Connections within this process: a pair of sockets where the network and its TLS would be.

Both ends are driven as those of any connection are, so what works here works over the network, back-pressure
and sudden ends included.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

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
