"""The gRPC connection to a runtime's socket. Every failure is raised as RuntimeFault.

Methods are called by their path, so no generated stubs are needed. gRPC reconnects by itself, with waits that
suit a socket on the same machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, Self, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from podling.cri.interface import UNAVAILABLE, RuntimeFault

Answer = TypeVar("Answer", bound=Message)
Metadata = tuple[tuple[str, str], ...]

_MAX_ANSWER = 64 * 1024 * 1024
_OPTIONS = (
    ("grpc.max_receive_message_length", _MAX_ANSWER),
    ("grpc.initial_reconnect_backoff_ms", 50),
    # How long an attempt may take, by gRPC's strange name for it: a busy runtime is slow to greet.
    ("grpc.min_reconnect_backoff_ms", 5000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
    # Sub-channels are shared in a process by address: a closed connection's backoff must not be the next
    # one's.
    ("grpc.use_local_subchannel_pool", 1),
)
_NOT_YET = "server is not initialized yet"
"""containerd's answer (without a code of its own) while it loads its state after a start."""


class Connection:
    """Belongs to the event loop it is made in. `endpoint` is a socket's path, with or without `unix://`."""

    def __init__(self, endpoint: str) -> None:
        target = f"unix://{endpoint}" if endpoint.startswith("/") else endpoint
        self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        self._methods: dict[str, grpc.aio.UnaryUnaryMultiCallable[Message, Message]] = {}

    async def call(
        self,
        path: str,
        request: Message,
        answer: type[Answer],
        deadline: float | None,
        metadata: Metadata = (),
        wait_for_ready: bool = False,
    ) -> Answer:
        """The answer of the method at `path`. `deadline` is in seconds; None waits without one."""
        method = self._methods.get(path)
        if method is None:
            method = self._channel.unary_unary(
                path, request_serializer=_serialize, response_deserializer=answer.FromString
            )
            self._methods[path] = method
        try:
            received = await method(
                request, timeout=deadline, metadata=metadata, wait_for_ready=wait_for_ready
            )
        except grpc.aio.AioRpcError as error:
            raise _fault(error) from error
        assert isinstance(received, answer)
        return received

    def stream(
        self, path: str, request: Message, answer: type[Answer], metadata: Metadata = ()
    ) -> Stream[Answer]:
        """The answers of the streaming method at `path`; the call is sent now, or once the runtime is
        there."""
        method = self._channel.unary_stream(
            path, request_serializer=_serialize, response_deserializer=answer.FromString
        )
        return Stream(method(request, metadata=metadata, wait_for_ready=True))

    async def close(self) -> None:
        await self._channel.close(None)


class Stream(Generic[Answer]):
    """The answers of a streaming call as they come. Leaving the block cancels the call."""

    def __init__(self, call: grpc.aio.UnaryStreamCall[Message, Answer]) -> None:
        self._call = call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call.cancel()

    @property
    def ended(self) -> bool:
        return self._call.done()

    async def __aiter__(self) -> AsyncIterator[Answer]:
        try:
            async for answer in self._call:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise _fault(error) from error


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _fault(error: grpc.aio.AioRpcError) -> RuntimeFault:
    details = error.details() or ""
    return RuntimeFault(UNAVAILABLE if _NOT_YET in details else error.code().name, details)
