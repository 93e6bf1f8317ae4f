"""Service account tokens: issued for one account and what it is bound to, good while all of that is there.

A token names uids, so that it does not come to life again with an object of the same name. What a signature
has proven is remembered; whether account, pod, secret and node are still there is asked for every request.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from podling.apiserver.admission.plugin import Find
from podling.apiserver.authn import claims as claim
from podling.apiserver.authn.claims import Binding, Claims, Named
from podling.apiserver.authn.signing import SigningKey
from podling.apiserver.request import Request, User
from podling.model.config import Secret
from podling.model.errors import unauthorized
from podling.model.meta import KubeObject, ObjectMeta
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.service_account import ServiceAccount
from podling.model.time import Clock, parse_time

ISSUER = "https://kubernetes.default.svc.cluster.local"
SCHEME = "bearer "
LEEWAY = timedelta(minutes=1)
"""How far clocks may differ, and how long an object that is being deleted still counts."""
REMEMBERED = 1024


class Owner(NamedTuple):
    """Whom a token is for, and for which of the audiences that were asked about."""

    user: User
    audiences: Sequence[str]


class Grant(msgspec.Struct, frozen=True):
    """What a token is to say."""

    binding: Binding
    audiences: Sequence[str]
    lifetime: timedelta


class ServiceAccountTokens:
    """An authenticator, and the issuer of what it recognises."""

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
            sub=claim.subject(grant.binding.namespace, account.name),
        )
        return self.key.sign(claim.write(claims))

    def authenticate(self, request: Request) -> User | None:
        """Raises StatusError 401 for a token that was good once."""
        header = request.headers.get("Authorization", "")
        if header[: len(SCHEME)].lower() != SCHEME:
            return None
        owner = self.owner_of(header[len(SCHEME) :].strip(), self.audiences)
        return owner.user if owner else None

    def owner_of(self, token: str, audiences: Collection[str]) -> Owner | None:
        """None for a token that is none of these. Raises StatusError 401 for one that is not good here and
        now.
        """
        claims = self._claims(token)
        if claims is None or claims.iss != ISSUER:
            return None
        shared = [audience for audience in claims.aud if audience in audiences]
        if not shared or not self._is_good(claims):
            raise unauthorized()
        return Owner(claim.user_of(claims), shared)

    def _claims(self, token: str) -> Claims | None:
        known = self._proven.get(token)
        if known is not None:
            return known
        payload = self.key.verified(token)
        claims = claim.read(payload) if payload is not None else None
        if claims is not None:
            if len(self._proven) >= REMEMBERED:
                self._proven.clear()
            self._proven[token] = claims
        return claims

    def _is_good(self, claims: Claims) -> bool:
        now = self._clock.now()
        leeway, moment = LEEWAY.total_seconds(), now.timestamp()
        if not claims.nbf - leeway <= moment <= claims.exp + leeway:
            return False
        return all(self._stands(*bound, now - LEEWAY) for bound in _bound(claims.binding))

    def _stands(
        self, type_: type[KubeObject], namespace: str, named: Named, deleted_before: datetime
    ) -> bool:
        found = self.find(type_, namespace, named.name)
        return (
            found is not None and found.metadata.uid == named.uid and _lives(found.metadata, deleted_before)
        )


def _bound(binding: Binding) -> Iterator[tuple[type[KubeObject], str, Named]]:
    """What must be there for a token to be good."""
    namespace = binding.namespace
    yield ServiceAccount, namespace, binding.serviceaccount
    if binding.pod:
        yield Pod, namespace, binding.pod
    elif binding.node:
        # The node of a pod is only told of: the pod goes when its node does.
        yield Node, "", binding.node
    if binding.secret:
        yield Secret, namespace, binding.secret


def _lives(meta: ObjectMeta, deleted_before: datetime) -> bool:
    return not meta.deletion_timestamp or parse_time(meta.deletion_timestamp) >= deleted_before
