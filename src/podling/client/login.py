"""How a client authenticates: with a client certificate, an `Authorization` header, or both.

Credentials may change while the client lives, so the transport asks for them before each request.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from podling.process.tls import Reread


class Shown(NamedTuple):
    """The credentials of a request. `authorization` is the header's value, "" for none; `tls` has the trusted
    authorities and the client certificate. Another `tls` object makes new connections."""

    authorization: str
    tls: ssl.SSLContext


class Login(Protocol):
    async def present(self) -> Shown:
        """The current credentials. Raises OSError when there are none."""
        ...

    async def renew(self, refused: Shown) -> Shown | None:
        """Other credentials after the server answered 401 to `refused`; None when there are none. Raises
        OSError."""
        ...


class StandingLogin:
    """Credentials given once, or in files that are read again when they are replaced."""

    def __init__(self, tls: Reread[ssl.SSLContext], authorization: Reread[str]) -> None:
        self._tls = tls
        self._authorization = authorization

    def standing(self) -> Shown:
        return Shown(self._authorization.get(), self._tls.get())

    async def present(self) -> Shown:
        return self.standing()

    async def renew(self, refused: Shown) -> Shown | None:
        shown = await self.present()
        return shown if shown != refused else None


class LoginOfFile:
    """That of a kubeconfig, which is read again when it was replaced."""

    def __init__(self, current: Callable[[], Login]) -> None:
        self.current = current

    async def present(self) -> Shown:
        return await self.current().present()

    async def renew(self, refused: Shown) -> Shown | None:
        return await self.current().renew(refused)


def at_hand(login: Login) -> Shown | None:
    """The current credentials where nobody has to be asked for them."""
    current = login.current() if isinstance(login, LoginOfFile) else login
    return current.standing() if isinstance(current, StandingLogin) else None


def bearer(token: str) -> str:
    """The header's value for a token. Raises ValueError for a token that no header may contain."""
    if not token.isprintable():
        raise ValueError("a token has no control characters in it")
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header's value for user and password (RFC 7617)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def bearer_in(file: Path) -> str:
    """The header's value for the token in `file`. Raises OSError or ValueError."""
    token = file.read_text().strip()
    if not token:
        raise ValueError(f"{file} is empty")
    return bearer(token)
