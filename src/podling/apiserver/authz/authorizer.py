"""Authorization: the ordered opinions on whether a user may do what a request asks.

The first authorizer with an opinion decides; if none has one the request is refused, with Kubernetes' words.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from podling.apiserver.request import RequestInfo, User
from podling.model.errors import StatusError, forbidden


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
    """What they decide together; without a decision, all that they said."""
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
