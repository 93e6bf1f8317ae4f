"""The first request of a command. It is sent by a plain socket, before asyncio and the parser of its answer
are imported: they take as long as all that a request needs.

It is for who needs nobody else before the server: no proxy, no login that has to ask.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from podling.client.login import Login, at_hand
from podling.client.route import CONNECT_TIMEOUT, Query, Route, Wire, keep_alive, target
from podling.process.http_client import request_head


class First(NamedTuple):
    """A GET that is on its way."""

    target: str
    connection: socket.socket
    """One of `ssl` if the server speaks TLS."""
    tls: ssl.SSLContext


def send(server: str, login: Login, wire: Wire, path: str, query: Query) -> First | None:
    """GET `path`. None where it needs more than a socket. Raises OSError."""
    shown = at_hand(login)
    if shown is None or wire.proxy is not None:
        return None
    url = urlsplit(server.rstrip("/"))
    asked = target(url, path, query)
    request = request_head("GET", asked, [*wire.head(url, shown), *wire.accepted()])
    try:
        connection = connect(wire.route(url), shown.tls)
        try:
            connection.sendall(request)
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        raise OSError(f"{server}: {error}") from error
    return First(asked, connection, shown.tls)


def connect(route: Route, tls: ssl.SSLContext) -> socket.socket:
    """Straight to the server, by TLS if it speaks that. Raises OSError."""
    connection = None
    try:
        at: Any = _plain(route.host), route.port
        connection = socket.create_connection(at, CONNECT_TIMEOUT)
        keep_alive(connection)
        if route.name is not None:
            connection = tls.wrap_socket(connection, server_hostname=_plain(route.name))
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, TimeoutError):
            raise OSError(f"{route.authority} does not take a connection") from error
        raise


def _plain(name: str) -> str | bytes:
    """For names that are no bytes Python imports a codec, with tables of Unicode."""
    return name.encode() if name.isascii() else name
