"""How a client shows who it is: a client certificate, an `Authorization` header, or both.

They may change while the client lives, so each request asks for them anew.
"""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import NamedTuple, Protocol

from podling.client.tls import Reread


class Shown(NamedTuple):
    """`authorization` is the value of the header, "" for none; `tls` trusts the server and has the client
    certificate. Another context makes other connections."""

    authorization: str
    tls: ssl.SSLContext


class Login(Protocol):
    async def present(self) -> Shown:
        """What to show now. Raises OSError when there is nothing to be had."""
        ...

    async def renew(self, refused: Shown) -> Shown | None:
        """The server has answered 401 to `refused`: what else there is, None when nothing. Raises OSError."""
        ...


class StandingLogin:
    """Given once, or in files that are read again when they are replaced."""

    def __init__(self, tls: Reread[ssl.SSLContext], authorization: Reread[str]) -> None:
        self._tls = tls
        self._authorization = authorization

    async def present(self) -> Shown:
        return Shown(self._authorization.get(), self._tls.get())

    async def renew(self, refused: Shown) -> Shown | None:
        shown = await self.present()
        return shown if shown != refused else None


def bearer(token: str) -> str:
    """The header's value. Raises ValueError for what no header may have in it."""
    if not token.isprintable():
        raise ValueError("a token has no control characters in it")
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header's value (RFC 7617)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def bearer_in(file: Path) -> str:
    """The header's value, of a file that has a token in it. Raises OSError or ValueError."""
    token = file.read_text().strip()
    if not token:
        raise ValueError(f"{file} is empty")
    return bearer(token)
