"""Bootstrap tokens, with which a kubelet asks for its first certificate: `abcdef.0123456789abcdef`.

The Secret `bootstrap-token-abcdef` of kube-system says what the token is, until when it is good, and in which
groups its user is. It is read at every request, so a token ends with its secret. One that is not good is
nobody's, as in Kubernetes, rather than refused: another authenticator may know it.
"""

from __future__ import annotations

import hmac
import re

from podling.apiserver.authn.authenticators import bearer_token
from podling.apiserver.request.context import Find
from podling.apiserver.request.request import Request, User
from podling.model.rules.bootstrap_tokens import (
    BOOTSTRAPPERS,
    NAMESPACE,
    PREFIX,
    SECRET_TYPE,
    TOKEN,
    has_expired,
    told,
)
from podling.model.time import Clock
from podling.model.types.core import Secret
from podling.model.types.rbac import AUTHENTICATED

_GROUP = re.compile(rf"{BOOTSTRAPPERS}:[a-z0-9:-]{{0,255}}[a-z0-9]")


class BootstrapTokens:
    """The authenticator that recognises them."""

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find, self._clock = find, clock

    def authenticate(self, request: Request) -> User | None:
        token = TOKEN.fullmatch(bearer_token(request))
        if token is None:
            return None
        name, secret = token.groups()
        found = self._find(Secret, NAMESPACE, PREFIX + name)
        if found is None or found.metadata.deletion_timestamp or found.type != SECRET_TYPE:
            return None
        said = told(found)
        if not hmac.compare_digest(found.data.get("token-secret", b""), secret.encode()):
            return None
        if said.get("token-id") != name or said.get("usage-bootstrap-authentication") != "true":
            return None
        extra = said.get("auth-extra-groups", "")
        groups = set(extra.split(",")) if extra else set()
        if has_expired(said, self._clock.now()) or not all(map(_GROUP.fullmatch, groups)):
            return None
        return User(f"system:bootstrap:{name}", (*sorted({BOOTSTRAPPERS, *groups}), AUTHENTICATED))
