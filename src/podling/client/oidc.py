"""The login `oidc` of a kubeconfig (`users[].user.auth-provider`): an ID token, which its issuer renews for a
refresh token, as kubectl 1.36 does it (`tests/peer/test_client_logins.py`). What is given anew is kept in the
kubeconfig, because an issuer may take a refresh token only once.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec
import yaml

from podling.client.login import Shown, StandingLogin, basic, bearer
from podling.client.proxies import of_environment
from podling.client.route import Wire
from podling.client.tls import Pair, Trust, client_tls
from podling.model.time import Clock
from podling.process.tls import Reread

NAME = "oidc"
ID_TOKEN, REFRESH_TOKEN = "id-token", "refresh-token"
EARLY = timedelta(seconds=10)
"""So long before its end a token is not shown any more."""
DISCOVERY = "/.well-known/openid-configuration"
FORM = "application/x-www-form-urlencoded"
OK = 200


class Issuer(NamedTuple):
    url: str
    client: str
    secret: str
    trust: Trust


class _Claims(msgspec.Struct):
    exp: float = 0.0


class _Places(msgspec.Struct):
    token_endpoint: str = ""


class _Given(msgspec.Struct):
    id_token: str = ""
    access_token: str = ""
    refresh_token: str = ""
    error: str = ""
    error_description: str = ""


def end_of(token: str) -> datetime:
    """When an ID token (a JWT, RFC 7519) ends. Raises ValueError."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("it is no JWT")
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    claims = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Claims)
    try:
        return datetime.fromtimestamp(claims.exp, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"exp: {error}") from error


def refreshed(answer: bytes, code: int) -> _Given:
    """The tokens in what an issuer answers (RFC 6749, 5.1 and 5.2). Raises ValueError."""
    try:
        given = msgspec.json.decode(answer, type=_Given)
    except msgspec.DecodeError as error:
        raise ValueError(f"the issuer answered {code}, and not in JSON: {error}") from error
    if given.error or code != OK:
        raise ValueError(f"the issuer refused it: {given.error or code} {given.error_description}".rstrip())
    if not given.access_token:
        raise ValueError("the issuer answered without an access_token")
    return given


class OidcLogin:
    """`tokens` are those of the kubeconfig, by their fields; `keep` gets those that differ. Whoever needs one
    while it is being renewed waits for that."""

    def __init__(
        self,
        issuer: Issuer,
        tokens: Mapping[str, str],
        tls: Reread[ssl.SSLContext],
        keep: Callable[[Mapping[str, str]], None],
        clock: Clock,
    ) -> None:
        self._issuer = issuer
        self._tokens = dict(tokens)
        self._tls = tls
        self._keep = keep
        self._clock = clock
        self._renewing = asyncio.Lock()

    async def present(self) -> Shown:
        async with self._renewing:
            try:
                if not self._is_good(self._tokens.get(ID_TOKEN, "")):
                    await self._renew()
                return Shown(bearer(self._tokens[ID_TOKEN]), self._tls.get())
            except (OSError, ValueError) as error:
                raise OSError(f"auth-provider oidc: {error}") from error

    async def renew(self, refused: Shown) -> Shown | None:
        """A token that has not ended and was refused is not made better by another of the same issuer."""
        shown = await self.present()
        return shown if shown != refused else None

    def _is_good(self, token: str) -> bool:
        return bool(token) and end_of(token) > self._clock.now() + EARLY

    async def _renew(self) -> None:
        known = self._tokens.get(REFRESH_TOKEN, "")
        if not known:
            raise ValueError("there is no ID token that has not ended, and no refresh-token to get one with")
        endpoint = await self._endpoint()
        form = {"grant_type": "refresh_token", "refresh_token": known}
        issuer = self._issuer
        try:
            login = basic(quote_plus(issuer.client), quote_plus(issuer.secret))
            given = refreshed(*await self._asked("POST", endpoint, form, login))
        except ValueError:
            # Some issuers want the client in the form.
            form = {"client_id": issuer.client, "client_secret": issuer.secret, **form}
            given = refreshed(*await self._asked("POST", endpoint, form))
        if not given.id_token:
            raise ValueError(
                "the issuer answered without an id_token: the scope openid was not asked for at the login, or"
                " it gives none for a refresh token"
            )
        new = {ID_TOKEN: given.id_token, REFRESH_TOKEN: given.refresh_token or known}
        await asyncio.to_thread(self._keep, new)
        self._tokens = new

    async def _endpoint(self) -> str:
        answer, code = await self._asked("GET", f"{self._issuer.url.rstrip('/')}{DISCOVERY}")
        if code != OK:
            raise ValueError(f"{self._issuer.url}{DISCOVERY} is answered {code}")
        found = msgspec.json.decode(answer, type=_Places).token_endpoint
        if not found.startswith(("https://", "http://")):
            raise ValueError(f'{self._issuer.url}{DISCOVERY}: token_endpoint is "{found}"')
        return found

    async def _asked(
        self, method: str, url: str, form: Mapping[str, str] | None = None, authorization: str = ""
    ) -> tuple[bytes, int]:
        """The answer and its code."""
        # A server reads kubeconfigs, too, and has no use for HTTP's client.
        from podling.client.https import HttpsTransport

        tls = client_tls(self._issuer.trust, Pair())
        wire = Wire(proxy=of_environment(urlsplit(url), os.environ), trusting=tls)
        transport = HttpsTransport(url, StandingLogin(tls, Reread([], lambda: authorization)), wire)
        body = urlencode(form).encode() if form else None
        try:
            code, _, answer = await transport.request(method, "", {}, body, FORM)
        finally:
            await transport.close()
        return answer, code


def keep_tokens(file: Path, user: str, tokens: Mapping[str, str]) -> None:
    """Into the kubeconfig, under the lock that kubectl takes for that. Raises OSError."""
    file = file.resolve()
    lock = file.with_name(f"{file.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0))
    except FileExistsError as error:
        raise OSError(f"new tokens cannot be kept: {lock} says that another program writes {file}") from error
    partial = file.with_name(f"{file.name}.new")
    try:
        document: dict[str, Any] = yaml.safe_load(file.read_text())
        for entry in document.get("users") or ():
            if entry.get("name") == user:
                entry["user"]["auth-provider"]["config"].update(tokens)
        partial.unlink(missing_ok=True)
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
            yaml.safe_dump(document, written, sort_keys=False)
        partial.chmod(file.stat().st_mode & 0o777)
        partial.replace(file)
    finally:
        lock.unlink()
