"""What a service account token says, and which user that makes: the claims Kubernetes puts in, pure."""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.authn.authenticator import AUTHENTICATED
from podling.apiserver.request import User

SERVICE_ACCOUNTS = "system:serviceaccounts"
_EXTRA = "authentication.kubernetes.io"


class Named(msgspec.Struct, omit_defaults=True, frozen=True):
    """An object the token is bound to: it is good for as long as that object is there."""

    name: str = ""
    uid: str = ""


class Binding(msgspec.Struct, omit_defaults=True, frozen=True):
    """Whose the token is, and what it is bound to. `warnafter` is when it was asked to end, of one that was
    given longer.
    """

    namespace: str
    serviceaccount: Named
    pod: Named | None = None
    secret: Named | None = None
    node: Named | None = None
    warnafter: int = 0


class Claims(msgspec.Struct, frozen=True):
    """Times are seconds since 1970."""

    aud: list[str]
    exp: int
    iat: int
    iss: str
    jti: str
    binding: Binding = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


_decoder = msgspec.json.Decoder(Claims)


def read(payload: bytes) -> Claims | None:
    """None when they are not those of a service account token."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeError):
        return None


def write(claims: Claims) -> bytes:
    return msgspec.json.encode(claims)


def subject(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def user_of(claims: Claims) -> User:
    binding = claims.binding
    return User(
        claims.sub,
        (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{binding.namespace}", AUTHENTICATED),
        binding.serviceaccount.uid,
        tuple((f"{_EXTRA}/{key}", (value,)) for key, value in _extra(claims) if value),
    )


def _extra(claims: Claims) -> list[tuple[str, Any]]:
    pod, node = claims.binding.pod or Named(), claims.binding.node or Named()
    return [
        ("credential-id", f"JTI={claims.jti}"),
        ("node-name", node.name),
        ("node-uid", node.uid),
        ("pod-name", pod.name),
        ("pod-uid", pod.uid),
    ]
