"""The transport over HTTPS, for any Kubernetes API server.

A server that vanished must not be waited for: a request has a deadline, and a connection whose other end does
not even acknowledge for a minute breaks, so that a watch on it begins again.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator, Mapping

import aiohttp
from yarl import URL

from podling.client.transport import JSON, Answer
from podling.model.errors import StatusError

CONNECT_TIMEOUT = 10.0
DEADLINE = 60.0
"""Seconds for one exchange; Kubernetes' servers give up a request after as many."""
PROBES = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3}
UNACKNOWLEDGED_MS = 60_000


class HttpsTransport:
    """Keeps connections open between calls. `token` is a bearer token; a client certificate is in `tls`;
    `deadline` is in seconds."""

    def __init__(
        self, server: str, tls: ssl.SSLContext, *, token: str = "", deadline: float = DEADLINE
    ) -> None:
        self._server = server.rstrip("/")
        self._tls = tls
        self._headers = {"Accept": JSON, "User-Agent": "podling"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._deadline = aiohttp.ClientTimeout(total=deadline, sock_connect=CONNECT_TIMEOUT)
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        headers = {"Content-Type": content_type} if body is not None else {}
        try:
            async with self._open().request(
                method,
                self._url(path, query),
                data=body,
                headers=headers,
                ssl=self._tls,
                timeout=self._deadline,
            ) as response:
                return response.status, response.headers, await response.read()
        except TimeoutError as error:
            raise OSError(f"{self._server} did not answer {method} {path} in time") from error
        except aiohttp.ClientError as error:
            raise OSError(f"{self._server}: {error}") from error

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        try:
            async with self._open().get(self._url(path, query), ssl=self._tls) as response:
                if response.status != 200:
                    raise StatusError.from_json(response.status, await response.read())
                async for piece in response.content.iter_any():
                    yield piece
        except aiohttp.ClientError as error:
            raise OSError(f"{self._server}: {error}") from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        # Made on first use: a session belongs to the event loop it is made on.
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)
            # Watches keep theirs: with a limit, enough of them would leave none for requests.
            connector = aiohttp.TCPConnector(limit=0, socket_factory=_watched_socket)
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=timeout, connector=connector)
        return self._session

    def _url(self, path: str, query: Mapping[str, str]) -> URL:
        return URL(self._server + path).with_query(query)


def _watched_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, type_, protocol, _, _ = address
    made = socket.socket(family, type_, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in PROBES.items():
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    return made
