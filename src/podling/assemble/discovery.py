"""How a machine that has a bootstrap token and an authority's hash comes to know a cluster: kubeadm's way.

    cluster-info, from whoever answers ─▶ signed by the token ─▶ its authority has the hash
        ─▶ cluster-info once more, of a server of that authority ─▶ the same

The token proves that who answers knows it, the hash that the authority is the one that was meant: another
who has the token could sign, too.
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from podling.client.client import Client
from podling.client.https import HttpsTransport
from podling.client.login import StandingLogin, bearer
from podling.client.route import Wire
from podling.client.tls import Pair, Trust, client_tls
from podling.machine.start import StartError
from podling.model.errors import StatusError
from podling.model.rules.bootstrap_tokens import (
    INFO,
    INFO_NAMESPACE,
    KUBECONFIG,
    SIGNATURE,
    TOKEN,
    key_hashes,
    signature,
)
from podling.model.types.core import ConfigMap
from podling.process.tls import Reread
from podling.remote.bootstrap_tokens import InfoError, place_of

DEADLINE = 10.0
"""Seconds for a request."""
NOT_YET, EXPIRED = 9, 10
"""OpenSSL's codes of certificates that are not of this time."""
NO_PAIR = Pair()
MAKE_ANOTHER = "make another where the cluster is, with `podling token create --print-join-command`"


class Joining(msgspec.Struct, frozen=True):
    """What a machine is told of the cluster that it is to join. `server` is HOST:PORT."""

    server: str
    token: str
    hashes: Sequence[str]

    @property
    def url(self) -> str:
        return f"https://{self.server}"


def authority_in(info: ConfigMap, token: str, hashes: Sequence[str]) -> bytes:
    """The authorities that are published, once both token and hash say that they are the cluster's. Raises
    StartError."""
    parts = TOKEN.fullmatch(token)
    if parts is None:
        raise StartError(f'"{token}" is no bootstrap token: one is like abcdef.0123456789abcdef')
    name, secret = parts.groups()
    content, signed = info.data.get(KUBECONFIG, ""), info.data.get(SIGNATURE + name, "")
    if not signed:
        raise StartError(f'the cluster knows no token "{name}", or its time is over: {MAKE_ANOTHER}')
    if not hmac.compare_digest(signed, signature(content, name, secret)):
        raise StartError(f'the cluster has a token "{name}" with another secret: {MAKE_ANOTHER}')
    try:
        authority = place_of(content).authority
        found = key_hashes(authority)
    except (InfoError, ValueError) as error:
        raise StartError(str(error)) from error
    if not set(found) & set(hashes):
        raise StartError(
            f"the authority of this cluster has the hash {', '.join(found)}, and none of --ca-hash: "
            "it is another cluster, or somebody in between"
        )
    return authority


async def discovered(joining: Joining) -> bytes:
    """The authorities of the cluster, in PEM. Raises StartError."""
    first = await _published(joining, Trust(insecure=True))
    authority = authority_in(first, joining.token, joining.hashes)
    second = await _published(joining, Trust(authority))
    if authority_in(second, joining.token, joining.hashes) != authority:
        raise StartError(f"{joining.server} does not say the same of the cluster twice")
    return authority


@asynccontextmanager
async def by_token(joining: Joining, authority: bytes) -> AsyncIterator[Client]:
    """A client that authenticates with the token."""
    client = client_of(joining, Trust(authority), bearer(joining.token))
    try:
        yield client
    finally:
        await client.close()


def client_of(joining: Joining, trust: Trust, authorization: str = "", pair: Pair = NO_PAIR) -> Client:
    """Of the API server that is joined."""
    login = StandingLogin(client_tls(trust, pair), Reread([], lambda: authorization))
    return Client(HttpsTransport(joining.url, login, Wire(), deadline=DEADLINE))


async def _published(joining: Joining, trust: Trust) -> ConfigMap:
    """Raises StartError."""
    client = client_of(joining, trust)
    try:
        return await client.get(ConfigMap, INFO, INFO_NAMESPACE)
    except StatusError as error:
        raise StartError(
            f"the API server at {joining.server} does not say to strangers which cluster it is of "
            f"(ConfigMap {INFO} of {INFO_NAMESPACE}): {error.message}"
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise StartError(untrusted(joining.server, error)) from error
    except OSError as error:
        raise StartError(f"the API server at {joining.server} cannot be reached: {error}") from error
    finally:
        await client.close()


def untrusted(server: str, error: ssl.SSLCertVerificationError) -> str:
    why = f"the certificate of the API server at {server} cannot be trusted: {error.verify_message}"
    if error.verify_code in (NOT_YET, EXPIRED):
        return f"{why}; do the clocks of this machine and of the cluster differ?"
    return why
