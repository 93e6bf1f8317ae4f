"""The gRPC connection to a socket on this machine: a runtime's, a CSI driver's. Every failure is raised as
RuntimeFault.

A call connects when there is no connection, and fails at once when nobody listens. The kernel tells when the
other side is gone, so nobody is asked whether it is still there (docs/decisions/129).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from podling.cri.interface import UNAVAILABLE, RuntimeFault
from podling.process.grpc import Followed, Peer, StatusError
from podling.process.http2 import Headers

Answer = TypeVar("Answer", bound=Message)

_CONNECTED_WITHIN = 5.0
"""Seconds: a busy runtime is slow to greet."""
_LARGEST_ANSWER = 64 * 1024 * 1024
_NOT_YET = "server is not initialized yet"
"""containerd's answer (without a code of its own) while it loads its state after a start."""


class Connection:
    """Belongs to the event loop it is used in. `endpoint` is a socket's path, with or without `unix://`."""

    def __init__(self, endpoint: str) -> None:
        path = endpoint.removeprefix("unix://")
        self._peer = Peer(
            "localhost",
            lambda link: asyncio.get_running_loop().create_unix_connection(link, path),
            connects_within=_CONNECTED_WITHIN,
            largest=_LARGEST_ANSWER,
        )

    async def call(
        self,
        path: str,
        request: Message,
        answer: type[Answer],
        deadline: float | None,
        metadata: Headers = (),
    ) -> Answer:
        """The answer of the method at `path`. `deadline` is in seconds, for the connection as for the answer;
        None waits without one."""
        try:
            async with asyncio.timeout(deadline):
                link = await self._peer.link()
            told = await link.ask(path, request.SerializeToString(), metadata, seconds=deadline)
            return answer.FromString(told)
        except TimeoutError as error:
            raise RuntimeFault("DEADLINE_EXCEEDED", "context deadline exceeded") from error
        except (StatusError, DecodeError) as error:
            raise _fault(error) from error

    @asynccontextmanager
    async def stream(
        self, path: str, request: Message, answer: type[Answer], metadata: Headers = ()
    ) -> AsyncGenerator[Stream[Answer]]:
        """The answers of the streaming method at `path`, which has been called. Leaving the block cancels the
        call."""
        try:
            link = await self._peer.link()
            async with link.follow(path, request.SerializeToString(), metadata) as followed:
                yield Stream(followed, answer)
        except (StatusError, DecodeError) as error:
            raise _fault(error) from error

    async def close(self) -> None:
        await self._peer.close()


class Stream(Generic[Answer]):
    """The answers of a streaming call as they come."""

    def __init__(self, followed: Followed, answer: type[Answer]) -> None:
        self._followed = followed
        self._answer = answer

    @property
    def ended(self) -> bool:
        return self._followed.ended

    async def __aiter__(self) -> AsyncIterator[Answer]:
        async for told in self._followed:
            yield self._answer.FromString(told)


def _fault(error: StatusError | DecodeError) -> RuntimeFault:
    if isinstance(error, DecodeError):
        return RuntimeFault("INTERNAL", f"what it says cannot be read: {error}")
    return RuntimeFault(UNAVAILABLE if _NOT_YET in str(error) else error.name, str(error))
