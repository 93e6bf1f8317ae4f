"""Bootstrap tokens, with which a kubelet asks for its first certificate: `abcdef.0123456789abcdef`.

The Secret `bootstrap-token-abcdef` of kube-system says what the token is, until when it is good, and in which
groups its user is. It is read at every request, so a token ends with its secret. One that is not good is
nobody's, as in Kubernetes, rather than refused: another authenticator may know it.
"""

from __future__ import annotations

import hmac
import re

from podling.apiserver.authn.authenticators import bearer_token
from podling.apiserver.request.context import AUTHENTICATED, Find
from podling.apiserver.request.request import Request, User
from podling.model.time import Clock, parse_time, settled
from podling.model.types.core import Secret

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
BOOTSTRAPPERS = "system:bootstrappers"
"""The group of all of them."""
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP = re.compile(rf"{BOOTSTRAPPERS}:[a-z0-9:-]{{0,255}}[a-z0-9]")


class BootstrapTokens:
    """The authenticator that recognises them."""

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find, self._clock = find, clock

    def authenticate(self, request: Request) -> User | None:
        token = _TOKEN.fullmatch(bearer_token(request))
        if token is None:
            return None
        name, secret = token.groups()
        found = self._find(Secret, NAMESPACE, f"bootstrap-token-{name}")
        if found is None or found.metadata.deletion_timestamp or found.type != SECRET_TYPE:
            return None
        told = {key: value.decode(errors="replace") for key, value in found.data.items()}
        if not hmac.compare_digest(found.data.get("token-secret", b""), secret.encode()):
            return None
        if told.get("token-id") != name or told.get("usage-bootstrap-authentication") != "true":
            return None
        extra = told.get("auth-extra-groups", "")
        groups = set(extra.split(",")) if extra else set()
        if self._has_expired(told.get("expiration", "")) or not all(map(_GROUP.fullmatch, groups)):
            return None
        return User(f"system:bootstrap:{name}", (*sorted({BOOTSTRAPPERS, *groups}), AUTHENTICATED))

    def _has_expired(self, until: str) -> bool:
        """A time that cannot be read has passed; no time never does."""
        try:
            return bool(until) and parse_time(settled(until, "date-time")) <= self._clock.now()
        except ValueError:
            return True
