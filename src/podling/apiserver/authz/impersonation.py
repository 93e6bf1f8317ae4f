"""Whether a user may act as another: Kubernetes' constrained impersonation (KEP-5284) and the older one.

Several modes are tried in order, and the first that allows it decides who the user is. A constrained mode
asks two things: may the request's verb be used while impersonating (`impersonate-on:user-info:list` pods),
and may this user be impersonated (`impersonate:user-info` users/bob), with each group, uid and extra asked
for. The older mode asks only the second, with the plain verb `impersonate`, and then allows everything. If no
mode allows it, the refusal is that of the first. Kubernetes begins with the mode that last allowed the same
user something; here who somebody is does not follow from what he did before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from podling.apiserver.authn.tokens import claimed_subject
from podling.apiserver.authz.authorizers import Authorizer, authorize, refusal
from podling.apiserver.request.context import ANONYMOUS, Impersonation
from podling.apiserver.request.request import RequestInfo, User
from podling.model import names
from podling.model.errors import StatusError
from podling.model.rules.certificates import NODE, NODES
from podling.model.types.rbac import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED

ACCOUNT_PREFIX = claimed_subject("", "").removesuffix(":")
NODE_NAME = "authentication.kubernetes.io/node-name"
GROUP, VERSION = "authentication.k8s.io", "v1"
ANY = "*"
_URL_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def impersonate(
    authorizers: Sequence[Authorizer], asker: User, wanted: User, info: RequestInfo
) -> Impersonation:
    """Raises StatusError 403."""
    first: StatusError | None = None
    for mode in MODES:
        if not mode.is_for(wanted, asker):
            continue
        try:
            for asked in mode.asks(asker, wanted, info):
                authorize(authorizers, asker, asked)
        except StatusError as error:
            first = first or error
            continue
        return Impersonation(mode.user(wanted), asker, mode.constraint)
    assert first is not None, "the old way is for everybody"
    raise first


class _Constrained(msgspec.Struct, frozen=True):
    """A constrained mode, for the users of `is_for`, with verbs of its own. Only a mode for users by name
    takes groups, uid and extra from the request; for others they follow from the name."""

    name: str
    is_for: Callable[[User, User], bool]

    @property
    def constraint(self) -> str:
        return f"impersonate:{self.name}"

    def asks(self, asker: User, wanted: User, info: RequestInfo) -> Iterator[RequestInfo]:
        """The checks that must be allowed. Raises StatusError 403 for what is never allowed."""
        yield info._replace(verb=f"impersonate-on:{self.name}:{info.verb}")
        if (node := node_of(wanted.name)) is None:
            yield _named(self.constraint, wanted.name, GROUP, VERSION)
        else:
            whose = ANY if self.name == "associated-node" else node
            yield _asked(self.constraint, "nodes", whose)
        if "" in wanted.groups:
            why = "impersonating the empty string group is not allowed"
            raise refusal(asker, _asked(self.constraint, "groups", ""), why)
        if MASTERS in wanted.groups:
            why = f"impersonating the {MASTERS} group is not allowed"
            raise refusal(asker, _asked(self.constraint, "groups", MASTERS), why)
        for key, values in wanted.extra:
            if why := _fault_of_extra(key, values):
                raise refusal(asker, _asked(self.constraint, "userextras", ""), why)
        yield from _attributes(self.constraint, wanted, GROUP)

    def user(self, wanted: User) -> User:
        groups = wanted.groups if node_of(wanted.name) is None else (NODES,)
        return _completed(wanted._replace(groups=groups))


class _Legacy:
    """The older mode: by the verb `impersonate`, for any user."""

    constraint = ""

    def is_for(self, wanted: User, asker: User) -> bool:
        return True

    def asks(self, asker: User, wanted: User, info: RequestInfo) -> Iterator[RequestInfo]:
        yield _named("impersonate", wanted.name, "", "v1")
        yield from _attributes("impersonate", wanted, "")

    def user(self, wanted: User) -> User:
        return _completed(wanted)


def node_of(user: str) -> str | None:
    """The name of the node whose user this is; None for others."""
    name = user.removeprefix(NODE)
    return name if name != user and not names.dns1123_subdomain(name) else None


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account whose user this is; None for others."""
    parts = user.removeprefix(ACCOUNT_PREFIX).split(":")
    if not user.startswith(ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    namespace, name = parts
    return None if names.dns1123_label(namespace) or names.dns1123_subdomain(name) else (namespace, name)


def _only_named(wanted: User) -> bool:
    return not (wanted.groups or wanted.uid or wanted.extra)


MODES: Sequence[_Constrained | _Legacy] = (
    # A service account asks for the node that its token, by the API server's own claim, was bound to.
    _Constrained(
        "associated-node",
        lambda wanted, asker: (
            _only_named(wanted)
            and account_of(asker.name) is not None
            and (node := node_of(wanted.name)) is not None
            and dict(asker.extra).get(NODE_NAME, ()) == (node,)
        ),
    ),
    _Constrained(
        "arbitrary-node", lambda wanted, _: _only_named(wanted) and node_of(wanted.name) is not None
    ),
    _Constrained(
        "serviceaccount", lambda wanted, _: _only_named(wanted) and account_of(wanted.name) is not None
    ),
    _Constrained(
        "user-info", lambda wanted, _: node_of(wanted.name) is None and account_of(wanted.name) is None
    ),
    _Legacy(),
)


def _named(verb: str, user: str, group: str, version: str) -> RequestInfo:
    """The resource to ask about: a service account is asked about as the object it is."""
    if (account := account_of(user)) is None:
        return _asked(verb, "users", user, group=group, version=version)
    namespace, name = account
    return _asked(verb, "serviceaccounts", name, group=group, version=version, namespace=namespace)


def _attributes(verb: str, wanted: User, group: str) -> Iterator[RequestInfo]:
    """The checks of groups, uid and extra."""
    if wanted.uid:
        yield _asked(verb, "uids", wanted.uid)
    for one in wanted.groups:
        yield _asked(verb, "groups", one, group=group)
    for key, values in wanted.extra:
        for value in values:
            yield _asked(verb, "userextras", value, subresource=key)


def _asked(
    verb: str,
    resource: str,
    name: str,
    *,
    group: str = GROUP,
    version: str = VERSION,
    namespace: str = "",
    subresource: str = "",
) -> RequestInfo:
    return RequestInfo(verb, "", True, group, version, namespace, resource, subresource, name)


def _fault_of_extra(key: str, values: Sequence[str]) -> str:
    if not key:
        return "impersonating the empty string key in extra is not allowed"
    domain, _, path = key.partition("/")
    if not path:
        wrong, why = key, 'must be a domain-prefixed path (such as "acme.io/foo")'
    elif faults := names.dns1123_subdomain(domain):
        wrong, why = domain, faults[0]
    elif not _URL_PATH.fullmatch(path):
        wrong, why = path, f"Invalid path (regex used for validation is '{_URL_PATH.pattern}')"
    else:
        return "impersonating the empty string value in extra is not allowed" if "" in values else ""
    return f'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "{wrong}": {why}'


def _completed(user: User) -> User:
    """The user with the groups that follow from its name."""
    groups, account = user.groups, account_of(user.name)
    if account is not None and not groups:
        groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account[0]}")
    if user.name == ANONYMOUS.name:
        added = UNAUTHENTICATED
    elif UNAUTHENTICATED not in groups:
        added = AUTHENTICATED
    else:
        return user
    return user._replace(groups=groups if added in groups else (*groups, added))
