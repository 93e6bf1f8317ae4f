"""The pipeline for clients in the same process: the client's transport without sockets.

A request takes every step of the pipeline except authentication, so it behaves as it would over HTTPS.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import lru_cache
from urllib.parse import urlencode

from podling.apiserver.request.request import Request, User
from podling.apiserver.request.response import JSON, Handle
from podling.model.errors import StatusError
from podling.process.waits import Turn

PROGRAMS = {
    "apiserver": "kube-apiserver",
    "node": "kubelet",
    "serviceaccount": "kube-controller-manager",
}


class LocalTransport:
    """Implements `podling.client.transport.Transport`; every request is from `user`."""

    def __init__(self, handle: Handle, user: User) -> None:
        self._handle = handle
        self._user = user
        self._program = program_of(user)
        self._turn = Turn()

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> tuple[int, Mapping[str, str], bytes]:
        # Without a socket nothing here waits: a client that asks in a loop would starve all other tasks.
        await self._turn.share()
        headers = {"User-Agent": self._program}
        if body is not None:
            headers["Content-Type"] = content_type
        request = Request(method, path, _encoded(tuple(query.items())), headers, body or b"", self._user)
        response = await self._handle(request)
        if isinstance(response.body, bytes):
            return response.status, response.headers, response.body
        raise ValueError(f"{method} {path} answers with a stream: ask for it with stream()")

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        response = await self._handle(Request("GET", path, _encoded(tuple(query.items())), user=self._user))
        if isinstance(response.body, bytes):
            if response.status != 200:
                raise StatusError.from_json(response.status, response.body)
            yield response.body
            return
        if not isinstance(response.body, AsyncGenerator):
            raise ValueError(f"{path} hands the connection on: it needs a socket")
        async with aclosing(response.body) as pieces:
            async for piece in pieces:
                yield piece
                await self._turn.share()

    async def close(self) -> None:
        """Nothing to close: the server outlives its clients."""


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


def program_of(user: User) -> str:
    """The program that runs as `user` in Kubernetes, as `User-Agent`: `kubelet` for the user of a node."""
    name = user.name.removeprefix("system:").partition(":")[0]
    return PROGRAMS.get(name, name)
