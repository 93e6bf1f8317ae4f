"""The public keys of an issuer of JSON Web Tokens: found by OpenID Connect Discovery, fetched before they
are needed, kept, and fetched again for a key that is not among them, which is at most once in REST seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec
from jwt.algorithms import get_default_algorithms
from jwt.exceptions import InvalidKeyError, PyJWTError

Fetch = Callable[[str], Awaitable[bytes]]
"""GET of a URL. Raises OSError, also when it takes too long or the answer is too long."""
WELL_KNOWN = "/.well-known/openid-configuration"
REST = 10.0
MOST = 100
"""Keys of one issuer."""

log = logging.getLogger(__name__)


class _Discovered(msgspec.Struct):
    issuer: str = ""
    jwks_uri: str = ""


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]] = []


class Keys:
    """`now` tells seconds that only grow."""

    def __init__(self, issuer: str, discovery: str, fetch: Fetch, now: Callable[[], float]) -> None:
        self._issuer = issuer
        self._discovery = discovery or issuer.rstrip("/") + WELL_KNOWN
        self._fetch, self._now = fetch, now
        self._location = ""
        self._keys: Sequence[dict[str, Any]] = ()
        self._prepared: dict[tuple[int, str], Any] = {}
        self._asked: float | None = None
        self._turn = asyncio.Lock()

    async def of(self, kid: str, algorithm: str) -> list[Any]:
        """The keys with an ID, or all if it is empty, for an algorithm of PyJWT."""
        if found := list(self._of(kid, algorithm)):
            return found
        await self.refresh()
        return list(self._of(kid, algorithm))

    async def refresh(self) -> None:
        """Fetch them, unless that was just done. Whoever comes meanwhile waits for it."""
        came = self._now()
        async with self._turn:
            if self._asked is not None and came < self._asked + REST:
                return
            self._asked = self._now()
            try:
                self._keys = await self._fetched()
                self._prepared.clear()
            except (OSError, ValueError) as error:
                log.warning("keys of the issuer %s: %s", self._issuer, error)

    async def _fetched(self) -> Sequence[dict[str, Any]]:
        """Raises OSError, ValueError."""
        if not self._location:
            said = msgspec.json.decode(await self._fetch(self._discovery), type=_Discovered)
            if said.issuer != self._issuer:
                raise ValueError(f"{self._discovery} is about another issuer, {said.issuer!r}")
            self._location = said.jwks_uri
        return msgspec.json.decode(await self._fetch(self._location), type=_KeySet).keys[:MOST]

    def _of(self, kid: str, algorithm: str) -> Iterator[Any]:
        for index, key in enumerate(self._keys):
            if not kid or key.get("kid") == kid:
                at = index, algorithm
                if at not in self._prepared:
                    self._prepared[at] = _prepared(key, algorithm)
                if self._prepared[at] is not None:
                    yield self._prepared[at]


def _prepared(key: dict[str, Any], algorithm: str) -> Any:
    """None if it is no key for this algorithm."""
    if key.get("alg", algorithm) != algorithm or key.get("use", "sig") != "sig":
        return None
    try:
        made = get_default_algorithms()[algorithm].from_jwk(key)
    except (InvalidKeyError, PyJWTError, ValueError, KeyError, TypeError):
        return None
    # Who has a private key published it by mistake, and nothing is to be verified with it.
    return made if hasattr(made, "verify") else None
