"""The members of an etcd cluster: each question goes to one of them, and to the next when that one fails."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Body

import podling.storage.etcd.etcd_pb2 as pb
from podling.process.grpc import Peer, StatusError
from podling.process.http2 import CANCELLED, DEADLINE_EXCEEDED, INTERNAL, NOT_BEGUN, UNAVAILABLE, UNKNOWN

Answer = TypeVar("Answer", bound=Body)

PORT = 2379
CONNECTED_WITHIN = 2.0
"""Seconds until a member speaks HTTP/2 with who connects."""
ANSWERED_WITHIN = 5
"""Seconds; an etcd that elects a new leader answers within two."""
PING_EVERY = 10.0
"""Seconds: a member that was cut off must be noticed; etcd takes one ping in five seconds."""
FAILED_OVER = frozenset({CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE})
"""Codes of a member that failed; all others are answers."""
_HAS_LEADER = (("hasleader", "true"),)
"""A member that is cut off from the others would have a watch wait for news that it does not get: etcd is
told to end it, as by Kubernetes."""
NOT_SENT = (NOT_BEGUN, "no leader")
"""In what is said of what no member has begun to do."""


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
    """Belongs to the event loop it is made in. `tls` is for members whose URL is https."""

    def __init__(self, urls: Sequence[str], tls: ssl.SSLContext | None = None) -> None:
        self._urls = list(urls)
        self._members = [_member(url, tls) for url in urls]
        self._at = 0

    async def ask(self, path: str, request: Body, answer: type[Answer]) -> Answer:
        """The answer of one member. Raises EtcdError; the next question goes to the next if it failed."""
        member = self._at
        try:
            link = await self._members[member].link()
            return answer.FromString(
                await link.ask(path, request.SerializeToString(), seconds=ANSWERED_WITHIN)
            )
        except (StatusError, DecodeError) as error:
            raise self._fault(member, error) from error

    async def watch(self, request: pb.WatchCreateRequest) -> AsyncGenerator[pb.WatchResponse]:
        """The answers of a watch as they come, until its member fails. Raises EtcdError."""
        member, path = self._at, "/etcdserverpb.Watch/Watch"
        asked = pb.WatchRequest(create=request).SerializeToString()
        try:
            link = await self._members[member].link()
            async with link.follow(path, asked, _HAS_LEADER, more_follows=True) as answers:
                async for answer in answers:
                    yield pb.WatchResponse.FromString(answer)
            raise StatusError(UNAVAILABLE, "the watch was ended")
        except (StatusError, DecodeError) as error:
            raise self._fault(member, error) from error

    async def close(self) -> None:
        for member in self._members:
            await member.close()

    def _fault(self, member: int, error: StatusError | DecodeError) -> EtcdError:
        if isinstance(error, DecodeError):
            error = StatusError(INTERNAL, f"what it says is of no etcd: {error}")
        elif error.code == DEADLINE_EXCEEDED:
            why = f"no answer within {ANSWERED_WITHIN} s, as of a cluster without a quorum"
            error = StatusError(DEADLINE_EXCEEDED, why)
        failed = error.code in FAILED_OVER
        if failed and member == self._at:
            self._at = (member + 1) % len(self._members)
        return EtcdError(f"etcd at {self._urls[member]}: {error}", failed)


def _member(url: str, tls: ssl.SSLContext | None) -> Peer:
    authority, is_secure = target(url)
    parts, loop = urlsplit(url), asyncio.get_running_loop()
    context = (tls or ssl.create_default_context()) if is_secure else None
    return Peer(
        authority,
        lambda link: loop.create_connection(link, parts.hostname or "", parts.port or PORT, ssl=context),
        secure=is_secure,
        connects_within=CONNECTED_WITHIN,
        ping_every=PING_EVERY,
    )
