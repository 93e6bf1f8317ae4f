"""The transport over HTTPS, for any Kubernetes API server."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Mapping

import aiohttp
from yarl import URL

from podling.client.transport import JSON, Answer
from podling.model.errors import StatusError

CONNECT_TIMEOUT = 10.0


class HttpsTransport:
    """Keeps connections open between calls. `token` is a bearer token; a client certificate is in `tls`."""

    def __init__(self, server: str, tls: ssl.SSLContext, *, token: str = "") -> None:
        self._server = server.rstrip("/")
        self._tls = tls
        self._headers = {"Accept": JSON, "User-Agent": "podling"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        headers = {"Content-Type": content_type} if body is not None else {}
        try:
            async with self._open().request(
                method, self._url(path, query), data=body, headers=headers, ssl=self._tls
            ) as response:
                return response.status, response.headers, await response.read()
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
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=timeout)
        return self._session

    def _url(self, path: str, query: Mapping[str, str]) -> URL:
        return URL(self._server + path).with_query(query)
