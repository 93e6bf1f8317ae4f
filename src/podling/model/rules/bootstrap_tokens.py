"""Bootstrap tokens: what the Secret `bootstrap-token-abcdef` of kube-system says of the token
`abcdef.0123456789abcdef`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from podling.model.time import parse_time, settled
from podling.model.types.core import Secret

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
PREFIX = "bootstrap-token-"


def told(secret: Secret) -> Mapping[str, str]:
    return {key: value.decode(errors="replace") for key, value in secret.data.items()}


def expiration(said: Mapping[str, str]) -> datetime | None:
    """None if the token is good for ever. Raises ValueError for a time that cannot be read."""
    until = said.get("expiration", "")
    return parse_time(settled(until, "date-time")) if until else None


def has_expired(said: Mapping[str, str], now: datetime) -> bool:
    """A time that cannot be read has passed."""
    try:
        until = expiration(said)
    except ValueError:
        return True
    return until is not None and until <= now
