"""Who may do what until RBAC is served: those with a certificate everything, strangers ask for health only.

`docs/decisions` says why this is safe for a podling on loopback, and that the node and RBAC authorizers
take the place of `AuthenticatedAuthorizer`.
"""

from __future__ import annotations

from podling.apiserver.authn.authenticator import AUTHENTICATED
from podling.apiserver.authn.claims import SERVICE_ACCOUNTS
from podling.apiserver.authz.authorizer import ALLOW, NO_OPINION, Opinion
from podling.apiserver.request import RequestInfo, User

MASTERS = "system:masters"
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})


class MastersAuthorizer:
    """`system:masters` may do anything, whatever any other authorizer thinks."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return ALLOW if MASTERS in user.groups else NO_OPINION


class PublicPathsAuthorizer:
    """Health and version are for everyone to read."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        public = not info.is_resource_request and info.verb in ("get", "head") and info.path in PUBLIC_PATHS
        return ALLOW if public else NO_OPINION


class AuthenticatedAuthorizer:
    """Every identity this cluster's authority has signed for may do anything.

    Not so service accounts: their tokens are given away into pods.
    """

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        trusted = AUTHENTICATED in user.groups and SERVICE_ACCOUNTS not in user.groups
        return ALLOW if trusted else NO_OPINION
