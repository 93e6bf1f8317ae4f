"""Connections to an API server, straight or through a proxy, for any asyncio protocol."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from podling.client.route import CONNECT_TIMEOUT, Route, keep_alive

Factory = Callable[[], asyncio.BaseProtocol]


async def dial(route: Route, tls: ssl.SSLContext, factory: Factory) -> asyncio.Transport:
    """A connection whose protocol `factory` makes. `tls` is used for https servers. Raises OSError."""
    name = route.name
    context = None if name is None else tls
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            if route.proxy is None:
                transport, _ = await loop.create_connection(
                    factory, route.host, route.port, ssl=context, server_hostname=name
                )
            else:
                from podling.client.tunnel import tunnel

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
