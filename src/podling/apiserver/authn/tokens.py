"""Service account tokens: JSON Web Tokens signed with ES256, with Kubernetes' claims, issued and
recognised.

A token is bound to an account, and perhaps to a pod, secret or node, each with its uid, so that it does not
become valid again with a new object of the same name. The verification of a signature is cached; whether the
objects still exist is checked at every request.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from jwt import PyJWS
from jwt.exceptions import PyJWTError

from podling.apiserver.authn.authenticators import bearer_token
from podling.apiserver.request.context import AUTHENTICATED, Find
from podling.apiserver.request.request import Request, User
from podling.model.errors import unauthorized
from podling.model.time import Clock, parse_time
from podling.model.types.core import Secret, ServiceAccount
from podling.model.types.meta import KubeObject
from podling.model.types.node import Node
from podling.model.types.pod import Pod

SERVICE_ACCOUNTS = "system:serviceaccounts"
_EXTRA = "authentication.kubernetes.io"


ALGORITHM = "ES256"
COORDINATE_BYTES = 32
ISSUER = "https://kubernetes.default.svc.cluster.local"
LEEWAY = timedelta(minutes=1)
"""Seconds that clocks may differ, and that an object being deleted still counts as existing."""
REMEMBERED = 1024
_jws = PyJWS(algorithms=[ALGORITHM])


class Named(msgspec.Struct, omit_defaults=True, frozen=True):
    """An object that a token is bound to: the token is good only while it exists."""

    name: str = ""
    uid: str = ""


class Binding(msgspec.Struct, omit_defaults=True, frozen=True):
    """The account of a token and the objects it is bound to. `warnafter`: seconds since 1970 when a token
    with an extended lifetime should have been renewed."""

    namespace: str
    serviceaccount: Named
    pod: Named | None = None
    secret: Named | None = None
    node: Named | None = None
    warnafter: int = 0


class Claims(msgspec.Struct, frozen=True):
    """The claims of a token. Times are seconds since 1970."""

    aud: list[str]
    exp: int
    iat: int
    iss: str
    jti: str
    binding: Binding = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


_decoder = msgspec.json.Decoder(Claims)


def read_claims(payload: bytes) -> Claims | None:
    """The claims; None if they are not those of a service account token."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeError):
        return None


def write_claims(claims: Claims) -> bytes:
    return msgspec.json.encode(claims)


def claimed_subject(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def user_of_claims(claims: Claims) -> User:
    binding = claims.binding
    pod, node = binding.pod or Named(), binding.node or Named()
    extra = {
        "credential-id": f"JTI={claims.jti}",
        "node-name": node.name,
        "node-uid": node.uid,
        "pod-name": pod.name,
        "pod-uid": pod.uid,
    }
    return User(
        claims.sub,
        (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{binding.namespace}", AUTHENTICATED),
        binding.serviceaccount.uid,
        tuple((f"{_EXTRA}/{key}", (value,)) for key, value in extra.items() if value),
    )


class SigningKey:
    """A private key on the curve P-256, with which tokens are signed. A signature takes microseconds and a
    new key no time; RSA would take a thousand times as long."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._private = key
        self._public = key.public_key()
        self.id = _text(
            hashlib.sha256(
                self._public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            ).digest()
        )

    @classmethod
    def of_pem(cls, pem: bytes) -> SigningKey:
        """Raises ValueError for anything but a key on the curve P-256."""
        key = load_pem_private_key(pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("service account tokens are signed with a key on the curve P-256")
        return cls(key)

    @classmethod
    def made(cls) -> SigningKey:
        """A new key, for a server whose tokens need not outlive it."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    def sign(self, payload: bytes) -> str:
        return _jws.encode(payload, self._private, algorithm=ALGORITHM, headers={"kid": self.id})

    def verified(self, token: str) -> bytes | None:
        """The payload of `token`; None if this key has not signed it."""
        try:
            payload: bytes = _jws.decode(token, self._public, algorithms=[ALGORITHM])
        except (PyJWTError, ValueError):
            return None
        return payload

    def jwk(self) -> dict[str, Any]:
        """The public key as a JSON Web Key (RFC 7517)."""
        point = self._public.public_numbers()
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": _text(point.x.to_bytes(COORDINATE_BYTES, "big")),
            "y": _text(point.y.to_bytes(COORDINATE_BYTES, "big")),
        }


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Owner(NamedTuple):
    """The user of a token, and which of the requested audiences it is for."""

    user: User
    audiences: Sequence[str]


class Grant(msgspec.Struct, frozen=True):
    """What to issue a token for."""

    binding: Binding
    audiences: Sequence[str]
    lifetime: timedelta


class ServiceAccountTokens:
    """Issues tokens, and is the authenticator that recognises them."""

    def __init__(self, key: SigningKey, find: Find, clock: Clock) -> None:
        self.key = key
        self.find = find
        self.audiences = (ISSUER,)
        """Of the API server itself."""
        self._clock = clock
        self._proven: dict[str, Claims] = {}

    def issue(self, grant: Grant, now: datetime) -> str:
        account, begun = grant.binding.serviceaccount, int(now.timestamp())
        claims = Claims(
            aud=list(grant.audiences),
            exp=begun + int(grant.lifetime.total_seconds()),
            iat=begun,
            iss=ISSUER,
            jti=str(uuid.uuid4()),
            binding=grant.binding,
            nbf=begun,
            sub=claimed_subject(grant.binding.namespace, account.name),
        )
        return self.key.sign(write_claims(claims))

    def authenticate(self, request: Request) -> User | None:
        """The user of a bearer token of this server; None for other credentials. Raises StatusError 401 for a
        token that is no longer good."""
        token = bearer_token(request)
        owner = self.owner_of(token, self.audiences) if token else None
        return owner.user if owner else None

    def owner_of(self, token: str, audiences: Collection[str]) -> Owner | None:
        """The owner of a token; None if this server did not issue it. Raises StatusError 401 for one that is
        expired, for other audiences, or whose objects are gone."""
        claims = self._claims(token)
        if claims is None or claims.iss != ISSUER:
            return None
        shared = [audience for audience in claims.aud if audience in audiences]
        now = self._clock.now()
        leeway, moment = LEEWAY.total_seconds(), now.timestamp()
        in_time = claims.nbf - leeway <= moment <= claims.exp + leeway
        if not shared or not in_time or not self._objects_stand(claims.binding, now - LEEWAY):
            raise unauthorized()
        return Owner(user_of_claims(claims), shared)

    def _claims(self, token: str) -> Claims | None:
        known = self._proven.get(token)
        if known is not None:
            return known
        payload = self.key.verified(token)
        claims = read_claims(payload) if payload is not None else None
        if claims is not None:
            if len(self._proven) >= REMEMBERED:
                self._proven.clear()
            self._proven[token] = claims
        return claims

    def _objects_stand(self, binding: Binding, deleted_before: datetime) -> bool:
        """Whether all objects exist that must for a token to be good, with the uids that it names. One that
        is being deleted stands until `deleted_before`."""
        namespace = binding.namespace
        bound: list[tuple[type[KubeObject], str, Named | None]] = [
            (ServiceAccount, namespace, binding.serviceaccount),
            (Pod, namespace, binding.pod),
            # The node of a pod is only told of: the pod goes when its node does.
            (Node, "", None if binding.pod else binding.node),
            (Secret, namespace, binding.secret),
        ]
        for type_, where, named in bound:
            if named is None:
                continue
            found = self.find(type_, where, named.name)
            if found is None or found.metadata.uid != named.uid:
                return False
            deleted = found.metadata.deletion_timestamp
            if deleted and parse_time(deleted) < deleted_before:
                return False
        return True
