"""The accounts of podling's controllers: in the API server's process by their names, elsewhere by tokens.

Each controller writes as an account of `kube-system`, whose rights are a default role of its own, as with
`kube-controller-manager --use-service-account-credentials`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import datetime

from podling.client.client import Client
from podling.client.kubeconfig import Access
from podling.client.login import Shown, bearer
from podling.model.errors import StatusError
from podling.model.time import Clock, parse_optional
from podling.model.types.core import ServiceAccount, TokenRequest, TokenRequestSpec
from podling.model.types.meta import ObjectMeta
from podling.model.types.rbac import SERVICE_ACCOUNTS
from podling.process.tls import Reread

API_SERVER = "system:apiserver"
"""The user that the API server is to itself."""
NAMESPACE = "kube-system"
GROUPS = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{NAMESPACE}")
TOKEN_SECONDS = 3600
USED = 0.8
"""The part of a token's life after which another is asked for."""


def in_process(client: Callable[..., Client], name: str) -> Client:
    """The client of an account, by `client`, which makes one of a user and his groups. There need not be an
    object of it."""
    return client(f"system:serviceaccount:{NAMESPACE}:{name}", *GROUPS)


def elsewhere(access: Access, client: Client, name: str, clock: Clock) -> Client:
    """The client of an account, which `client` makes, where it is missing, and asks the tokens of."""
    login = AccountLogin(client, name, access.trusting, clock)
    from podling.client.https import HttpsTransport

    # Who is impersonated by `client` is not the account.
    return Client(HttpsTransport(access.server, login, access.wire._replace(headers=())))


class AccountLogin:
    """Implements `podling.client.login.Login`."""

    def __init__(self, client: Client, name: str, tls: Reread[ssl.SSLContext], clock: Clock) -> None:
        self._client, self._name, self._tls, self._clock = client, name, tls, clock
        self._one_asks = asyncio.Lock()
        self._authorization = ""
        self._renew_at: datetime | None = None

    async def present(self) -> Shown:
        async with self._one_asks:
            if self._renew_at is None or self._clock.now() >= self._renew_at:
                await self._ask()
        return Shown(self._authorization, self._tls.get())

    async def renew(self, refused: Shown) -> Shown | None:
        if refused.authorization == self._authorization:
            self._renew_at = None
        return await self.present()

    async def _ask(self) -> None:
        asked = self._clock.now()
        try:
            status = (await self._token()).status
        except StatusError as error:
            raise OSError(f"no token of {NAMESPACE}/{self._name}: {error}") from error
        self._authorization = bearer(status.token)
        expires = parse_optional(status.expiration_timestamp or "")
        self._renew_at = asked + (expires - asked) * USED if expires else None

    async def _token(self) -> TokenRequest:
        metadata, spec = ObjectMeta(namespace=NAMESPACE), TokenRequestSpec(expiration_seconds=TOKEN_SECONDS)
        request = TokenRequest(metadata=metadata, spec=spec)
        try:
            return await self._client.ask(ServiceAccount, self._name, "token", request)
        except StatusError as error:
            if error.code != 404:
                raise
        await self._client.create(ServiceAccount(metadata=ObjectMeta(name=self._name, namespace=NAMESPACE)))
        return await self._client.ask(ServiceAccount, self._name, "token", request)
