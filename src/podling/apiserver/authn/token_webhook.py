"""Tokens of which another server knows the owners (`--authentication-token-webhook-config-file`): it is sent
a TokenReview.

What it says is kept for a while, by digests: of good tokens and of others apart, so that who invents tokens
makes it forget no good one.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import msgspec

from podling.apiserver.authn.authenticators import Owner
from podling.apiserver.request.request import User
from podling.model.errors import unauthorized

Send = Callable[[bytes], Awaitable[tuple[int, bytes]]]
"""POST of a TokenReview; the status of the answer and its body. Raises OSError."""
PATIENCE = 10.0
"""Seconds for all attempts at one token."""
ATTEMPTS, FIRST_WAIT, GROWTH = 5, 0.5, 1.5
AT_ONCE = 100
"""Tokens that are asked about at the same time."""
REMEMBERED = 4096
"""Good tokens, and as many others."""


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Status(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)
    audiences: list[str] | None = None
    error: str = ""


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class TokenWebhook:
    """`ttl` is in seconds, as `now` tells them; `version` is that of authentication.k8s.io."""

    def __init__(self, send: Send, now: Callable[[], float], *, ttl: float, version: str) -> None:
        self._send, self._now, self._ttl = send, now, ttl
        self._version = f"authentication.k8s.io/{version}"
        self._good: OrderedDict[bytes, tuple[float, Owner]] = OrderedDict()
        self._bad: OrderedDict[bytes, tuple[float, None]] = OrderedDict()
        self._places = asyncio.Semaphore(AT_ONCE)

    async def owner_of(self, token: str, audiences: Collection[str]) -> Owner | None:
        """Raises StatusError 401 if the server cannot be asked, or says that something is wrong."""
        key = hashlib.sha256("\0".join((token, *sorted(audiences))).encode(errors="replace")).digest()
        for kept in (self._good, self._bad):
            if key in kept:
                until, owner = kept[key]
                if self._now() < until:
                    return owner
                del kept[key]
        try:
            async with asyncio.timeout(PATIENCE), self._places:
                status = await self._asked(token, audiences)
        except (OSError, TimeoutError, msgspec.DecodeError) as error:
            raise unauthorized() from error
        until = self._now() + self._ttl
        owner = _owner(status, audiences)
        if owner is not None:
            _keep(self._good, key, (until, owner))
            return owner
        if status.error:
            raise unauthorized()
        _keep(self._bad, key, (until, None))
        return None

    async def _asked(self, token: str, audiences: Collection[str]) -> _Status:
        """Raises OSError; msgspec.DecodeError for what is no TokenReview."""
        review = {
            "kind": "TokenReview",
            "apiVersion": self._version,
            "metadata": {"creationTimestamp": None},
            "spec": {"token": token, "audiences": list(audiences)},
            "status": {"user": {}},
        }
        body, wait = msgspec.json.encode(review), FIRST_WAIT
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(wait)
                wait *= GROWTH
            code, said = await self._send(body)
            if code < 300:
                return msgspec.json.decode(said, type=_Review).status
            if code < 500 and code != 429:
                break
        raise OSError(f"the webhook answered {code}")


def _keep(kept: OrderedDict[bytes, Any], key: bytes, what: Any) -> None:
    kept[key] = what
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)


def _owner(status: _Status, audiences: Collection[str]) -> Owner | None:
    """None if it is nobody's, or for others. A server that says nothing of audiences does not know of
    them."""
    shared = [one for one in audiences if not status.audiences or one in status.audiences]
    if not status.authenticated or (audiences and not shared):
        return None
    user = status.user
    extra = tuple((key, tuple(values)) for key, values in (user.extra or {}).items())
    return Owner(User(user.username, tuple(user.groups or ()), user.uid, extra), shared)
