"""What everyone with an identity may do: find out what is served, who they are and what they may do.

These are Kubernetes' bindings `system:discovery`, `system:basic-user` and, for service accounts,
`system:service-account-issuer-discovery`.
"""

from __future__ import annotations

from podling.apiserver.authn.authenticator import AUTHENTICATED
from podling.apiserver.authn.claims import SERVICE_ACCOUNTS
from podling.apiserver.authz.authorizer import ALLOW, NO_OPINION, Opinion
from podling.apiserver.request import RequestInfo, User

DISCOVERY = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")
SUBTREES = ("/api/", "/apis/", "/openapi/", "/version/")
ISSUER_PATHS = frozenset({"/.well-known/openid-configuration", "/openid/v1/jwks"})
SELF_REVIEWS = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)


class BasicAuthorizer:
    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        if AUTHENTICATED not in user.groups:
            return NO_OPINION
        if info.is_resource_request:
            asks_of_itself = info.verb == "create" and (info.api_group, info.resource) in SELF_REVIEWS
            return ALLOW if asks_of_itself else NO_OPINION
        return ALLOW if info.verb == "get" and _is_open(info.path, user) else NO_OPINION


def _is_open(path: str, user: User) -> bool:
    if path in ISSUER_PATHS:
        return SERVICE_ACCOUNTS in user.groups
    return path in DISCOVERY or path.startswith(SUBTREES)
