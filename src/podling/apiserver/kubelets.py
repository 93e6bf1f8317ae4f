"""How kubelets are reached: over TLS, or, one that serves in this process, directly (docs/decisions/024).

A Node says where its kubelet is, and that alone decides: a kubelet of this process is one that listens there.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

from podling.streaming.keep_alive import keep_alive
from podling.streaming.upgrade import Address
from podling.streaming.within import Connect


def unverified() -> ssl.SSLContext:
    """For those whose certificate nobody here can judge. The machine's own authorities are not read for it,
    which would take 30 ms of every start."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Kubelets:
    """`tls` carries the certificate that kubelets know the API server by."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._within: dict[tuple[str, int], Connect] = {}

    @contextmanager
    def join(self, host: str, port: int, connect: Connect) -> Iterator[None]:
        """While the block runs, whoever is at this address is reached by `connect`."""
        self._within[host, port] = connect
        try:
            yield
        finally:
            del self._within[host, port]

    def at(self, host: str, port: int) -> Address:
        return Address(host, port, self._tls, within=self._within.get((host, port)))


def http_connector(address: Address) -> aiohttp.BaseConnector:
    """For one plain request."""
    if address.within is not None:
        return _WithinConnector(address.within)
    return aiohttp.TCPConnector(ssl=address.tls or True, socket_factory=_kept_alive)


def _kept_alive(address: tuple[Any, ...]) -> socket.socket:
    """A socket for an address as `getaddrinfo` gives it."""
    family, kind, protocol, *_ = address
    connection = socket.socket(family, kind, protocol)
    keep_alive(connection)
    return connection


class _WithinConnector(aiohttp.BaseConnector):
    """What aiohttp's connectors to sockets of other sorts are, too: another way to make the connection."""

    def __init__(self, connect: Connect) -> None:
        super().__init__(force_close=True)
        self._connect_within = connect

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        made = self._factory()
        await self._connect_within(lambda: made)
        return made
