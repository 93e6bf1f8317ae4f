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
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from jwt import PyJWS
from jwt.exceptions import PyJWTError

from podling.apiserver.authn.authenticators import Owner, bearer_token
from podling.apiserver.request.context import Find
from podling.apiserver.request.request import Request, User
from podling.model.codec.quoting import quoted, quoted_list
from podling.model.errors import unauthorized
from podling.model.time import Clock, parse_time
from podling.model.types.core import Secret, ServiceAccount
from podling.model.types.meta import KubeObject
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.rbac import AUTHENTICATED, SERVICE_ACCOUNTS

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


class _Issued(msgspec.Struct):
    iss: str = ""


class Binding(msgspec.Struct, omit_defaults=True, frozen=True):
    """The account of a token and the objects it is bound to. `warnafter`: seconds since 1970 when a token
    with an extended lifetime should have been renewed."""

    namespace: str = ""
    serviceaccount: Named = Named()
    pod: Named | None = None
    secret: Named | None = None
    node: Named | None = None
    warnafter: int = 0


NOBODY = Binding()


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of a token. Times are seconds since 1970."""

    aud: list[str] | str = []
    exp: float | None = None
    iat: float | None = None
    iss: str = ""
    jti: str = ""
    binding: Binding = msgspec.field(name="kubernetes.io", default=NOBODY)
    nbf: float | None = None
    sub: str = ""


class TokenFault(Exception):
    """What is wrong with a token that this server has issued, or is said to have, in Kubernetes' words."""


_decoder = msgspec.json.Decoder(Claims)
_issued = msgspec.json.Decoder(_Issued)


def claimed_subject(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def user_of_claims(claims: Claims) -> User:
    binding = claims.binding
    pod, node = binding.pod or Named(), binding.node or Named()
    extra = {
        "credential-id": claims.jti and f"JTI={claims.jti}",
        "node-name": node.name,
        "node-uid": node.uid,
        "pod-name": pod.name,
        "pod-uid": pod.uid,
    }
    return User(
        claimed_subject(binding.namespace, binding.serviceaccount.name),
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

    def verified(self, token: str) -> bytes:
        """The payload of `token`. Raises TokenFault if this key has not signed it."""
        try:
            if _jws.get_unverified_header(token).get("kid", self.id) != self.id:
                raise TokenFault("invalid signature, no keys found")
            payload: bytes = _jws.decode(token, self._public, algorithms=[ALGORITHM])
        except (PyJWTError, ValueError) as error:
            raise TokenFault("go-jose/go-jose: error in cryptographic primitive") from error
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
        return self.key.sign(msgspec.json.encode(claims))

    def authenticate(self, request: Request) -> User | None:
        """The user of a bearer token of this server; None for other credentials. Raises StatusError 401 for a
        token that is no longer good."""
        token = bearer_token(request)
        owner = self.owner_of(token, self.audiences) if token else None
        return owner.user if owner else None

    def owner_of(self, token: str, audiences: Collection[str]) -> Owner | None:
        """The owner of a token; None if this server did not issue it. Raises StatusError 401, because of a
        TokenFault, for one that is expired, for other audiences, or whose objects are gone."""
        try:
            claims = self._claims(token)
            if claims is None:
                return None
            # Only those of before Kubernetes 1.24 were for nobody by name.
            named = [claims.aud] if isinstance(claims.aud, str) else claims.aud or self.audiences
            shared = [audience for audience in named if audience in audiences]
            if not shared:
                told = f"token audiences {quoted_list(named)} is invalid for the target audiences"
                raise TokenFault(f"{told} {quoted_list(tuple(audiences))}")
            now = self._clock.now()
            _check_times(claims, now.timestamp())
            self._check_objects(claims.binding, now - LEEWAY)
        except TokenFault as fault:
            raise unauthorized() from fault
        return Owner(user_of_claims(claims), shared)

    def _claims(self, token: str) -> Claims | None:
        """None for what is said to be of another issuer. Raises TokenFault."""
        known = self._proven.get(token)
        if known is not None:
            return known
        if issuer_of(token) != ISSUER:
            return None
        payload = self.key.verified(token)
        try:
            claims = _decoder.decode(payload)
        except (msgspec.DecodeError, UnicodeError) as error:
            why = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"
            raise TokenFault(why) from error
        if len(self._proven) >= REMEMBERED:
            self._proven.clear()
        self._proven[token] = claims
        return claims

    def _check_objects(self, binding: Binding, deleted_before: datetime) -> None:
        """All objects must exist for a token to be good, with the uids that it names. One that is being
        deleted stands until `deleted_before`. Raises TokenFault."""
        namespace, named = binding.namespace, binding.serviceaccount
        if not named.name:
            raise TokenFault("resource name may not be empty")
        account = self.find(ServiceAccount, namespace, named.name)
        if account is None:
            raise TokenFault(f"serviceaccounts {quoted(named.name)} not found")
        if _is_gone(account, deleted_before):
            raise TokenFault(f"service account {namespace}/{named.name} has been deleted")
        if account.metadata.uid != named.uid:
            uid = account.metadata.uid
            raise TokenFault(f"service account UID ({uid}) does not match claim ({named.uid})")
        bound: list[tuple[type[KubeObject], str, str, Named | None]] = [
            (Secret, "secret", namespace, binding.secret),
            (Pod, "pod", namespace, binding.pod),
            # The node of a pod is only told of: the pod goes when its node does.
            (Node, "node", "", None if binding.pod else binding.node),
        ]
        for type_, what, where, ref in bound:
            if ref is None:
                continue
            found = self.find(type_, where, ref.name)
            if found is None or _is_gone(found, deleted_before):
                raise TokenFault("service account token has been invalidated")
            if found.metadata.uid != ref.uid:
                uid = found.metadata.uid
                raise TokenFault(
                    f"{what} UID ({uid}) does not match service account {what} ref claim ({ref.uid})"
                )


def issuer_of(token: str) -> str:
    """Whom a token names, not verified; empty for what is no token."""
    if token.count(".") != 2:
        return ""
    try:
        return _issued.decode(decoded_part(token.split(".")[1])).iss
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ""


def decoded_part(part: str) -> bytes:
    """Raises ValueError."""
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


def _check_times(claims: Claims, now: float) -> None:
    """Raises TokenFault."""
    leeway = LEEWAY.total_seconds()
    if claims.nbf is not None and now + leeway < claims.nbf:
        raise TokenFault("service account token is not valid yet")
    if claims.exp is not None and now - leeway > claims.exp:
        raise TokenFault("service account token has expired")
    if claims.iat is not None and now + leeway < claims.iat:
        raise TokenFault("service account token is issued in the future")


def _is_gone(obj: KubeObject, deleted_before: datetime) -> bool:
    deleted = obj.metadata.deletion_timestamp
    return bool(deleted) and parse_time(deleted) < deleted_before
