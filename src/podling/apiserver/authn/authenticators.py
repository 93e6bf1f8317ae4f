"""The order in which authenticators are asked, and the `Impersonate-` headers of a request.

Each authenticator looks at one kind of credential, and the first that recognises one answers, whatever those
before it thought. A request without credentials is from `system:anonymous`, where strangers are let in; one
whose credentials nobody recognises is refused. Whether the user may impersonate is decided in
`authz/impersonation.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import unquote

import msgspec

from podling.apiserver.request.context import ANONYMOUS
from podling.apiserver.request.request import Request, User
from podling.model.errors import StatusError, bad_request, unauthorized
from podling.model.types.rbac import AUTHENTICATED, UNAUTHENTICATED

SCHEME = "bearer"
PREFIX = "impersonate-"
REMOTE, REMOTE_EXTRA = frozenset({"x-remote-user", "x-remote-uid", "x-remote-group"}), "x-remote-extra-"
USER, UID, GROUP, EXTRA = (f"{PREFIX}{what}" for what in ("user", "uid", "group", "extra-"))
_BROKEN_ESCAPE = re.compile("%(?![0-9a-f]{2})")


class Authenticator(Protocol):
    def authenticate(self, request: Request) -> User | None:
        """The user; None if the request has no credential of this kind. Raises StatusError 401 for an invalid
        one."""
        ...


class Owner(NamedTuple):
    """The user of a token, and which of the requested audiences it is for."""

    user: User
    audiences: Sequence[str]


class TokenAuthenticator(Protocol):
    """One that may have to ask another server."""

    async def owner_of(self, token: str, audiences: Collection[str]) -> Owner | None:
        """The owner of a token that is for one of `audiences`, which are those of this server; None if it is
        not of this kind. Raises StatusError 401 for an invalid one."""
        ...


def everywhere(path: str) -> bool:
    """Where strangers are let in, if nothing is said of it."""
    return True


class Authentication(msgspec.Struct, frozen=True):
    """Those who are asked whose request it is: `authenticators` first, then `asking`. `is_open` says on which
    paths strangers are let in."""

    authenticators: Sequence[Authenticator]
    asking: Sequence[TokenAuthenticator] = ()
    is_open: Callable[[str], bool] = everywhere
    audiences: Sequence[str] = ()

    def known(self, request: Request) -> User | None:
        """The user of a request; None if another server is to be `asked` first. Raises StatusError 401."""
        if request.user is not None:
            return request.user
        is_invalid = False
        for authenticator in self.authenticators:
            try:
                user = authenticator.authenticate(request)
            except StatusError:
                is_invalid = True
                continue
            if user is not None:
                return user
        token = bearer_token(request)
        if token and self.asking:
            return None
        if token or is_invalid or not self.is_open(request.path):
            raise unauthorized()
        return ANONYMOUS

    async def asked(self, request: Request) -> User:
        """The user of a request with a token, as those in `asking` know it. Raises StatusError 401."""
        owner = await self.owner_of(bearer_token(request))
        if owner is None:
            raise unauthorized()
        return owner.user

    async def owner_of(self, token: str) -> Owner | None:
        """The owner of a token, as those in `asking` know it."""
        for authenticator in self.asking:
            try:
                owner = await authenticator.owner_of(token, self.audiences)
            except StatusError:
                continue
            if owner is not None:
                return Owner(authenticated(owner.user), owner.audiences)
        return None


def authenticated(user: User) -> User:
    """With the group of all users who are known."""
    if user.name == ANONYMOUS.name or {AUTHENTICATED, UNAUTHENTICATED} & set(user.groups):
        return user
    return user._replace(groups=(*user.groups, AUTHENTICATED))


def bearer_token(request: Request) -> str:
    """The bearer token of a request, empty if it has none. As Kubernetes reads it, what follows the token is
    passed over, and after two blanks there is none."""
    words = request.headers.get("Authorization", "").strip().split(" ", 2)
    return words[1] if len(words) > 1 and words[0].lower() == SCHEME else ""


def is_about_impersonation(header: str) -> bool:
    """Whether a header is about impersonation."""
    return header[: len(PREFIX)].lower() == PREFIX


def says_who(header: str) -> bool:
    """Whether a header says who the client is, by impersonation or as proxies do; such headers are not passed
    on."""
    return header.lower() in REMOTE or header.lower().startswith((PREFIX, REMOTE_EXTRA))


def wanted_user(headers: Mapping[str, str]) -> User | None:
    """The user that the `Impersonate-` headers name; None if there are none. Raises StatusError 400 for
    groups, uid or extra without a user. All items of `headers` are looked at, since a header may occur
    several times."""
    # Every request is asked this: all names at once, because each on its own costs more than the answer.
    if PREFIX not in "".join(headers).lower():
        return None
    asked = [(name.lower(), value) for name, value in headers.items() if is_about_impersonation(name)]
    if not asked:
        return None
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in asked:
        if name.startswith(EXTRA):
            key = name.removeprefix(EXTRA)
            # A key with a malformed escape is taken as it is.
            key = key if _BROKEN_ESCAPE.search(key) else unquote(key)
            extra[key] = (*extra.get(key, ()), value)
    wanted = User(_first(asked, USER), _all(asked, GROUP), _first(asked, UID), tuple(extra.items()))
    if wanted.name:
        return wanted
    if wanted.uid or wanted.groups or wanted.extra:
        raise bad_request(f"requested {_as_go_writes(wanted)} without impersonating a user name")
    return None


def _all(asked: Iterable[tuple[str, str]], header: str) -> tuple[str, ...]:
    return tuple(value for name, value in asked if name == header)


def _first(asked: Iterable[tuple[str, str]], header: str) -> str:
    return next(iter(_all(asked, header)), "")


def _as_go_writes(user: User) -> str:
    extra = ", ".join(f"{_quoted(key)}:[]string{{{_listed(values)}}}" for key, values in sorted(user.extra))
    groups = f"[]string{{{_listed(user.groups)}}}" if user.groups else "[]string(nil)"
    members = f"map[string][]string{{{extra}}}" if user.extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{_quoted(user.uid)}, Groups:{groups}, Extra:{members}}}'


def _listed(values: Iterable[str]) -> str:
    return ", ".join(map(_quoted, values))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
