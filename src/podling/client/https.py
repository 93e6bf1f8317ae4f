"""The transport over HTTPS, for any Kubernetes API server.

A request has a deadline. A connection whose peer does not even acknowledge for a minute is closed, so that a
watch on a server that vanished begins again.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import NamedTuple, NotRequired, TypedDict

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podling.client.login import Login, Shown, basic
from podling.client.transport import JSON, Answer
from podling.model.errors import StatusError

CONNECT_TIMEOUT = 10.0
DEADLINE = 60.0
"""Seconds for one exchange, as many as after which kube-apiserver gives up a request."""
PROBES = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3}
UNACKNOWLEDGED_MS = 60_000
UNAUTHORIZED = 401


class _RequestOptions(TypedDict):
    headers: Mapping[str, str]
    ssl: ssl.SSLContext
    server_hostname: NotRequired[str]
    proxy: NotRequired[URL]
    proxy_headers: NotRequired[Mapping[str, str]]


class Wire(NamedTuple):
    """Further properties of a connection. `server_name` is the name in the server's certificate if it differs
    from the address; `proxy` is an http:// URL; `headers` go with every request."""

    server_name: str | None = None
    proxy: URL | None = None
    compressed: bool = True
    headers: tuple[tuple[str, str], ...] = ()


PLAIN = Wire()


class HttpsTransport:
    """Keeps connections open between calls. A request answered 401 was not carried out, so it is sent once
    more if `login` has another credential. `deadline` is in seconds."""

    def __init__(self, server: str, login: Login, wire: Wire = PLAIN, *, deadline: float = DEADLINE) -> None:
        self._server = server.rstrip("/")
        self._login = login
        self._wire = wire
        self._deadline = aiohttp.ClientTimeout(total=deadline, sock_connect=CONNECT_TIMEOUT)
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        headers = {"Content-Type": content_type} if body is not None else {}

        async def exchange(shown: Shown) -> Answer:
            sent = self._sent(shown, headers)
            url = self._url(path, query)
            async with self._open().request(
                method, url, data=body, timeout=self._deadline, **sent
            ) as response:
                return response.status, response.headers, await response.read()

        try:
            shown = await self._login.present()
            answer = await exchange(shown)
            if answer[0] == UNAUTHORIZED and (other := await self._login.renew(shown)):
                return await exchange(other)
            return answer
        except TimeoutError as error:
            raise OSError(f"{self._server} did not answer {method} {path} in time") from error
        except aiohttp.ClientError as error:
            raise OSError(f"{self._server}: {error}") from error

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        try:
            async with AsyncExitStack() as open_until_read:
                shown = await self._login.present()
                response = await open_until_read.enter_async_context(self._get(path, query, shown))
                if response.status == UNAUTHORIZED and (other := await self._login.renew(shown)):
                    response = await open_until_read.enter_async_context(self._get(path, query, other))
                if response.status != 200:
                    raise StatusError.from_json(response.status, await response.read())
                async for piece in response.content.iter_any():
                    yield piece
        except aiohttp.ClientError as error:
            raise OSError(f"{self._server}: {error}") from error

    def _get(
        self, path: str, query: Mapping[str, str], shown: Shown
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._open().get(self._url(path, query), **self._sent(shown, {}))

    def _sent(self, shown: Shown, headers: Mapping[str, str]) -> _RequestOptions:
        if shown.authorization:
            headers = {**headers, "Authorization": shown.authorization}
        options: _RequestOptions = {"headers": headers, "ssl": shown.tls}
        if self._wire.server_name:
            options["server_hostname"] = self._wire.server_name
        if proxy := self._wire.proxy:
            options["proxy"] = proxy.with_user(None)
            if proxy.user is not None:
                options["proxy_headers"] = {"Proxy-Authorization": basic(proxy.user, proxy.password or "")}
        return options

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        # Made on first use: a session belongs to the event loop it is made on.
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)
            # Watches keep theirs: with a limit, enough of them would leave none for requests.
            connector = aiohttp.TCPConnector(limit=0, socket_factory=_watched_socket)
            self._session = aiohttp.ClientSession(
                headers=CIMultiDict([("Accept", JSON), ("User-Agent", "podling"), *self._wire.headers]),
                skip_auto_headers=[] if self._wire.compressed else ["Accept-Encoding"],
                timeout=timeout,
                connector=connector,
            )
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
