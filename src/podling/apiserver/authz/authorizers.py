"""Authorization: authorizers asked in order, and the ones there are until RBAC is evaluated.

The first authorizer with a decision decides; without one the request is refused in Kubernetes' words. Holders
of a certificate may do everything, service accounts only what Kubernetes' bindings `system:discovery`,
`system:basic-user` and `system:service-account-issuer-discovery` allow, holders of a bootstrap token also ask
for a node's certificate, and strangers read health and version. `docs/decisions` says why this is safe on
loopback.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from podling.apiserver.authn.authenticators import Authenticator
from podling.apiserver.authn.bootstrap import BOOTSTRAPPERS
from podling.apiserver.authn.tokens import SERVICE_ACCOUNTS, Owner, ServiceAccountTokens
from podling.apiserver.request.context import AUTHENTICATED
from podling.apiserver.request.request import Request, RequestInfo, User
from podling.model.errors import StatusError, forbidden
from podling.model.types.rbac import MASTERS

PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
DISCOVERY = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")
SUBTREES = ("/api/", "/apis/", "/openapi/", "/version/")
ISSUER_PATHS = frozenset({"/.well-known/openid-configuration", "/openid/v1/jwks"})
REQUESTS = "certificates.k8s.io", "certificatesigningrequests"
SELF_REVIEWS = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)


class Decision(Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Opinion(NamedTuple):
    decision: Decision
    reason: str = ""


ALLOW = Opinion(Decision.ALLOW)
NO_OPINION = Opinion(Decision.NO_OPINION)


class Authorizer(Protocol):
    def authorize(self, user: User, info: RequestInfo) -> Opinion: ...


def opinion_of(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> Opinion:
    """The first decision; without one, no opinion, with the reasons of all."""
    reasons = []
    for authorizer in authorizers:
        opinion = authorizer.authorize(user, info)
        if opinion is ALLOW or opinion.decision is Decision.ALLOW:
            return opinion
        if opinion.reason:
            reasons.append(opinion.reason)
        if opinion.decision is Decision.DENY:
            return Opinion(Decision.DENY, ": ".join(reasons))
    return Opinion(Decision.NO_OPINION, ": ".join(reasons))


def authorize(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> None:
    """Raises StatusError 403."""
    opinion = opinion_of(authorizers, user, info)
    if opinion is not ALLOW and opinion.decision is not Decision.ALLOW:
        raise refusal(user, info, opinion.reason)


def refusal(user: User, info: RequestInfo, reason: str = "") -> StatusError:
    after = f": {reason}" if reason else ""
    if not info.is_resource_request:
        message = f'forbidden: User "{user.name}" cannot {info.verb} path "{info.path}"{after}'
        return StatusError(403, "Forbidden", message)
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f' in the namespace "{info.namespace}"' if info.namespace else " at the cluster scope"
    why = (
        f'User "{user.name}" cannot {info.verb} resource "{resource}" in API group "{info.api_group}"{where}'
    )
    return forbidden(info.resource, info.name, why + after, info.api_group)


class MastersAuthorizer:
    """`system:masters` may do anything, whatever any later authorizer thinks."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return ALLOW if MASTERS in user.groups else NO_OPINION


class PublicPathsAuthorizer:
    """Everyone may read health and version."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        public = not info.is_resource_request and info.verb in ("get", "head") and info.path in PUBLIC_PATHS
        return ALLOW if public else NO_OPINION


class AuthenticatedAuthorizer:
    """Every user with a certificate signed by this cluster's authority may do anything.

    Service accounts may not: their tokens are given to pods. Neither may holders of a bootstrap token.
    """

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        groups = user.groups
        trusted = AUTHENTICATED in groups and not (SERVICE_ACCOUNTS in groups or BOOTSTRAPPERS in groups)
        return ALLOW if trusted else NO_OPINION


class BootstrapAuthorizer:
    """Holders of a bootstrap token may ask for the certificate of a node, and get it approved: what the roles
    `system:node-bootstrapper` and `system:certificates.k8s.io:certificatesigningrequests:nodeclient` allow,
    as clusters bind them."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        if BOOTSTRAPPERS not in user.groups or (info.api_group, info.resource) != REQUESTS:
            return NO_OPINION
        asks = not info.subresource and info.verb in ("create", "get", "list", "watch")
        approved = info.subresource == "nodeclient" and info.verb == "create"
        return ALLOW if asks or approved else NO_OPINION


class BasicAuthorizer:
    """Every user may discover the API and ask about itself; service accounts may read who issues their
    tokens."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        if AUTHENTICATED not in user.groups:
            return NO_OPINION
        if info.is_resource_request:
            asks_of_itself = info.verb == "create" and (info.api_group, info.resource) in SELF_REVIEWS
            return ALLOW if asks_of_itself else NO_OPINION
        if info.path in ISSUER_PATHS:
            is_open = SERVICE_ACCOUNTS in user.groups
        else:
            is_open = info.path in DISCOVERY or info.path.startswith(SUBTREES)
        return ALLOW if info.verb == "get" and is_open else NO_OPINION


class AccessReviewer(msgspec.Struct, frozen=True):
    """Answers reviews; `tokens` also recognises tokens for other audiences than this server."""

    authenticators: Sequence[Authenticator]
    authorizers: Sequence[Authorizer]
    tokens: ServiceAccountTokens

    def may(self, user: User, info: RequestInfo) -> Opinion:
        return opinion_of(self.authorizers, user, info)

    def owner_of(self, token: str, audiences: Sequence[str] = ()) -> Owner | None:
        """The user a bearer token is for, at one of `audiences` (this server, if none is named); None when
        nobody recognises it.
        """
        wanted = audiences or self.tokens.audiences
        try:
            owner = self.tokens.owner_of(token, wanted)
        except StatusError:
            return None
        ours = [audience for audience in self.tokens.audiences if audience in wanted]
        if owner is not None or not ours:
            return owner
        request = Request("GET", "/", headers={"Authorization": f"Bearer {token}"})
        for authenticator in self.authenticators:
            try:
                user = authenticator.authenticate(request)
            except StatusError:
                return None
            if user is not None:
                return Owner(user, ours)
        return None
