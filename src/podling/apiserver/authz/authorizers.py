"""Authorization: authorizers asked in order, and what all have in common.

The first authorizer with a decision decides; without one the request is refused in Kubernetes' words. An
authorizer answers at once, since most know the answer; one that has to ask another server raises
`Unanswered`, and is asked again when the answer is there:

    opinion = await settled(lambda: opinion_of(authorizers, user, info))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import ContextVar
from enum import Enum
from typing import NamedTuple, ParamSpec, Protocol, TypeVar, runtime_checkable

import msgspec

from podling.apiserver.authn.authenticators import Authentication, Owner
from podling.apiserver.authn.tokens import ServiceAccountTokens
from podling.apiserver.request.request import Query, Request, RequestInfo, Selecting, User
from podling.model.errors import GenericError, StatusError, forbidden, joined
from podling.model.names import path_segment
from podling.model.selectors import (
    EXISTS,
    IN,
    MISSING,
    NOT_IN,
    field_terms,
    parse_requirements,
)
from podling.model.types.rbac import MASTERS, PolicyRule

P = ParamSpec("P")
T = TypeVar("T")

INVALID = "invalid bearer token"
NAME = "metadata.name"
SELECTING = ("list", "watch", "deletecollection")
OPERATORS = {IN: "In", NOT_IN: "NotIn", EXISTS: "Exists", MISSING: "DoesNotExist"}
LONGEST_SELECTOR = 8 * 1024
"""Characters of a selector that authorizers are told of. To leave one out only asks for more."""


class Decision(Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Opinion(NamedTuple):
    """`error`: what went wrong on the way to it, if something did."""

    decision: Decision
    reason: str = ""
    error: str = ""


# To look up a member of an Enum takes Python 3.11 0.3 us, more than most decisions.
ALLOWED, UNDECIDED = Decision.ALLOW, Decision.NO_OPINION
ALLOW, NO_OPINION = Opinion(ALLOWED), Opinion(UNDECIDED)


class ListedRules(NamedTuple):
    """The rules that an authorizer goes by for a user in a namespace. `faults` tells why some may be missing;
    `incomplete`: there are others that it cannot list."""

    rules: Sequence[PolicyRule]
    faults: Sequence[str]
    incomplete: bool = False


class Authorizer(Protocol):
    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        """Raises Unanswered."""
        ...


class Unanswered(Exception):
    """What an authorizer thinks of `question` is found out by `ask`."""

    def __init__(self, question: Hashable, ask: Callable[[], Awaitable[Opinion]]) -> None:
        super().__init__("another server has to be asked")
        self.question, self.ask = question, ask


_heard: ContextVar[dict[Hashable, Opinion] | None] = ContextVar("_heard", default=None)


def heard(question: Hashable) -> Opinion | None:
    """The answer that was found out for who asks now."""
    known = _heard.get()
    return None if known is None else known.get(question)


async def settled(decide: Callable[[], T]) -> T:
    """What `decide` returns or raises once the authorizers have all the answers that it wants from them. It
    is begun again after each, so it must change nothing."""
    try:
        return decide()
    except Unanswered:
        pass

    async def later() -> T:
        return decide()

    return await settled_later(later)


async def settled_later(decide: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `settled`, of what is decided beside the loop, or has been begun once already."""
    known: dict[Hashable, Opinion] = {}
    before = _heard.set(known)
    try:
        while True:
            try:
                return await decide(*args, **kwargs)
            except Unanswered as unanswered:
                question, ask = unanswered.question, unanswered.ask
            known[question] = await ask()
    finally:
        _heard.reset(before)


@runtime_checkable
class ListsRules(Protocol):
    """An authorizer that goes by rules, and can say which. The one for `system:masters` does not, as in
    Kubernetes: RBAC lists those of the role `cluster-admin`."""

    def rules_of(self, user: User, namespace: str) -> ListedRules: ...


def opinion_of(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> Opinion:
    """The first decision; without one, no opinion, with the reasons and errors of all. Raises Unanswered."""
    told: tuple[Opinion, ...] = ()
    for authorizer in authorizers:
        opinion = authorizer.authorize(user, info)
        if opinion.decision is not UNDECIDED:
            return opinion
        if opinion is not NO_OPINION:
            told = (*told, opinion)
    reasons = "\n".join(one.reason for one in told if one.reason)
    return Opinion(UNDECIDED, reasons, together([one.error for one in told if one.error]))


def together(faults: Sequence[str]) -> str:
    """Several faults as Go's aggregates show them, each once."""
    return joined(list(dict.fromkeys(faults)))


def asked(info: RequestInfo, query: Query) -> RequestInfo:
    """What a request asks to be allowed: with the fields that a list or watch selects, and the name, so that
    whoever may list one object only can wait for it."""
    if not query or not info.is_resource_request or info.verb not in SELECTING:
        return info
    if info.verb == "watch" and "watch" not in query:
        # By the older path, to which selectors are not told.
        return info
    # The verb says what is wrong with a selector, to whoever may list.
    fields = field_requirements(query.get("fieldSelector", ("",))[0])
    labels = label_requirements(query.get("labelSelector", ("",))[0])
    if not fields and not labels:
        return info
    info = info._replace(fields=fields, labels=labels)
    if info.name or info.verb == "deletecollection":
        return info
    name = next((value for field, value in info.selected if field == NAME), "")
    return info if path_segment(name) else info._replace(name=name)


def field_requirements(selector: str) -> Sequence[Selecting]:
    """What a field selector asks for; nothing if it cannot be read, or is too long."""
    if not selector or len(selector) > LONGEST_SELECTOR:
        return ()
    try:
        terms = tuple(field_terms(selector))
    except StatusError:
        return ()
    return tuple(Selecting(term.field, "In" if term.equal else "NotIn", (term.value,)) for term in terms)


def label_requirements(selector: str) -> Sequence[Selecting]:
    """As `field_requirements`, of a label selector."""
    if not selector or len(selector) > LONGEST_SELECTOR:
        return ()
    try:
        found = parse_requirements(selector)
    except StatusError:
        return ()
    return tuple(
        Selecting(one.key, OPERATORS[one.operator], tuple(sorted(one.values)))
        for one in sorted(found, key=lambda one: one.key)
        if one.operator in OPERATORS
    )


def authorize(authorizers: Sequence[Authorizer], user: User, info: RequestInfo) -> None:
    """Raises StatusError 403; Unanswered."""
    opinion = opinion_of(authorizers, user, info)
    if opinion.decision is not ALLOWED:
        raise refusal(user, info, opinion.reason)


def refusal(user: User, info: RequestInfo, reason: str = "") -> StatusError:
    after = f": {reason}" if reason else ""
    if not info.is_resource_request:
        message = f'forbidden: User "{user.name}" cannot {info.verb} path "{info.path}"{after}'
        return GenericError(403, "Forbidden", message)
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f' in the namespace "{info.namespace}"' if info.namespace else " at the cluster scope"
    why = (
        f'User "{user.name}" cannot {info.verb} resource "{resource}" in API group "{info.api_group}"{where}'
    )
    if not info.resource:
        return StatusError(403, "Forbidden", f"forbidden: {why}{after}", name=info.name)
    return forbidden(info.resource, info.name, why + after, info.api_group)


def rules_of(authorizers: Sequence[Authorizer], user: User, namespace: str) -> ListedRules:
    """What all of them go by that go by rules."""
    every = [one.rules_of(user, namespace) for one in authorizers if isinstance(one, ListsRules)]
    return ListedRules(
        [rule for one in every for rule in one.rules],
        [fault for one in every for fault in one.faults],
        any(one.incomplete for one in every),
    )


class MastersAuthorizer:
    """`system:masters` may do anything, whatever any later authorizer thinks."""

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return ALLOW if MASTERS in user.groups else NO_OPINION


class AccessReviewer(msgspec.Struct, frozen=True):
    """Answers reviews; `tokens` also recognises tokens for other audiences than this server."""

    authentication: Authentication
    authorizers: Sequence[Authorizer]
    tokens: ServiceAccountTokens

    def may(self, user: User, info: RequestInfo) -> Opinion:
        """Raises Unanswered."""
        return opinion_of(self.authorizers, user, info)

    def rules_of(self, user: User, namespace: str) -> ListedRules:
        """What all authorizers go by."""
        return rules_of(self.authorizers, user, namespace)

    async def owner_of(self, token: str, audiences: Sequence[str] = ()) -> Owner | str:
        """The user a bearer token is for, at one of `audiences` (this server, if none is named); or why it is
        nobody's.
        """
        wanted, fault = audiences or self.tokens.audiences, ""
        try:
            owner = self.tokens.owner_of(token, wanted)
        except StatusError as error:
            owner, fault = None, f"{error.__cause__ or ''}"
        ours = [audience for audience in self.tokens.audiences if audience in wanted]
        if owner is None and ours:
            owner = await self._other_owner(token, ours)
        return owner or (f"[{INVALID}, {fault}]" if fault else INVALID)

    async def _other_owner(self, token: str, ours: Sequence[str]) -> Owner | None:
        request = Request("GET", "/", headers={"Authorization": f"Bearer {token}"})
        for authenticator in self.authentication.authenticators:
            try:
                user = authenticator.authenticate(request)
            except StatusError:
                continue
            if user is not None:
                return Owner(user, ours)
        return await self.authentication.owner_of(token)
