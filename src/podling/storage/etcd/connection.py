"""The members of an etcd cluster: each question goes to one of them, and to the next when that one fails.

Methods are called by their path, so no generated stubs are needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio
from google.protobuf.message import Message

import podling.storage.etcd.etcd_pb2 as pb

Answer = TypeVar("Answer", bound=Message)

PORT = 2379
LONGEST_ANSWER = 1 << 31
ANSWERED_WITHIN = 5.0
"""Seconds; an etcd that elects a new leader answers within two."""
FAILED_OVER = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
    }
)
"""Codes of a member that failed; all others are answers."""
NOT_SENT = ("failed to connect", "no leader")
"""In the words of gRPC and etcd about what no member has begun to do."""
_OPTIONS = (
    ("grpc.max_receive_message_length", LONGEST_ANSWER - 1),
    ("grpc.max_send_message_length", LONGEST_ANSWER - 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A member that was cut off must be noticed; etcd takes one ping in five seconds.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class Tls(NamedTuple):
    """What `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile` hold, PEM; None for what is not given."""

    ca: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None


class EtcdError(Exception):
    """A question was not answered; the message says why. `failed`: by a member that failed, so that another
    may answer. `sent`: the member may do what it was asked for, now or later."""

    def __init__(self, message: str, failed: bool) -> None:
        super().__init__(message)
        self.failed = failed
        self.sent = failed and not any(words in message for words in NOT_SENT)


def target(url: str) -> tuple[str, bool]:
    """Host and port of `http://HOST[:PORT]` or `https://…`, and whether it speaks TLS. Raises ValueError with
    what to tell the user."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of an etcd: write http://HOST:PORT or https://HOST:PORT")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r}: a URL of an etcd has a host and a port alone")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or PORT}", parts.scheme == "https"


class Connection:
    """Belongs to the event loop it is made in."""

    def __init__(self, urls: Sequence[str], tls: Tls | None = None) -> None:
        self._urls, tls = list(urls), tls or Tls()
        credentials = grpc.ssl_channel_credentials(tls.ca, tls.key, tls.certificate)
        self._channels = [
            grpc.aio.secure_channel(host, credentials, options=_OPTIONS)
            if secure
            else grpc.aio.insecure_channel(host, options=_OPTIONS)
            for host, secure in map(target, urls)
        ]
        self._at = 0
        self._methods: dict[tuple[int, str], Any] = {}
        """By member and path: to make one takes a fifth of what it takes to ask."""

    async def ask(self, path: str, request: Message, answer: type[Answer]) -> Answer:
        """The answer of one member. Raises EtcdError; the next question goes to the next if it failed."""
        member = self._at
        method = self._methods.get((member, path))
        if method is None:
            method = self._methods[member, path] = self._channels[member].unary_unary(
                path, request_serializer=_serialize, response_deserializer=answer.FromString
            )
        try:
            received = await method(request, timeout=ANSWERED_WITHIN)
        except grpc.aio.AioRpcError as error:
            raise self._fault(member, error) from error
        assert isinstance(received, answer)
        return received

    async def watch(self, request: pb.WatchCreateRequest) -> AsyncGenerator[pb.WatchResponse]:
        """The answers of a watch as they come, until its member fails. Raises EtcdError."""
        member = self._at
        method = self._channels[member].stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=_serialize,
            response_deserializer=pb.WatchResponse.FromString,
        )
        call = method(_kept_open(pb.WatchRequest(create=request)))
        try:
            async for answer in call:
                assert isinstance(answer, pb.WatchResponse)
                yield answer
        except grpc.aio.AioRpcError as error:
            raise self._fault(member, error) from error
        finally:
            call.cancel()
        raise EtcdError(f"{self._urls[member]}: the watch was ended", failed=True)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close(None)

    def _fault(self, member: int, error: grpc.aio.AioRpcError) -> EtcdError:
        failed = error.code() in FAILED_OVER
        if failed and member == self._at:
            self._at = (member + 1) % len(self._channels)
        why = error.details() or error.code().name
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            why = f"no answer within {ANSWERED_WITHIN:g} s, as of a cluster without a quorum"
        return EtcdError(f"etcd at {self._urls[member]}: {why}", failed)


async def _kept_open(request: pb.WatchRequest) -> AsyncIterator[pb.WatchRequest]:
    """etcd ends the watches of those who say that they ask for no more."""
    yield request
    await asyncio.get_running_loop().create_future()


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
