"""A proxy in front of the server, which says in headers who its client is (`--requestheader-…`).

It is believed if it shows a certificate of its own authority, which need not be that of the clients. Like
every header that says who somebody is, these are not passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

import msgspec

from podling.apiserver.authn.authenticators import authenticated
from podling.apiserver.authn.certificates import Issuers, common_name
from podling.apiserver.request.request import Request, User
from podling.model.errors import unauthorized
from podling.model.time import Clock

_BROKEN_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")


class Headers(msgspec.Struct, frozen=True):
    """The names of the headers, by what they say; the first of `users` and of `uids` that says something
    counts. `names`: the common names of those who are believed; anybody if there are none."""

    names: Sequence[str] = ()
    users: Sequence[str] = ()
    uids: Sequence[str] = ()
    groups: Sequence[str] = ()
    extra_prefixes: Sequence[str] = ()


class FrontProxy:
    """The authenticator that recognises it."""

    def __init__(self, clock: Clock, authority: Issuers, headers: Headers) -> None:
        self._clock, self._authority, self._headers = clock, authority, headers

    def authenticate(self, request: Request) -> User | None:
        """Raises StatusError 401 for the certificate of somebody who is not believed."""
        if request.certificate is None:
            return None
        if not request.certificate.lifetime.has(self._clock.now()):
            raise unauthorized()
        if not self._authority.signed(request.certificate):
            raise unauthorized()
        if self._headers.names and common_name(request.certificate.subject) not in self._headers.names:
            raise unauthorized()
        return user_in(request.headers, self._headers)


def user_in(headers: Mapping[str, str], named: Headers) -> User | None:
    """The user of whom the headers tell; None if they name none."""
    name = next(_said(headers, named.users), "")
    if not name:
        return None
    groups = tuple(_said(headers, named.groups))
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in named.extra_prefixes:
        for header, value in headers.items():
            if header.lower().startswith(prefix.lower()):
                key = header[len(prefix) :].lower()
                # A key with a malformed escape is taken as it is.
                key = key if _BROKEN_ESCAPE.search(key) else unquote(key)
                extra[key] = (*extra.get(key, ()), value)
    return authenticated(User(name, groups, next(_said(headers, named.uids), ""), tuple(extra.items())))


def _said(headers: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    """What the headers of these names say, in the order of the names."""
    for name in names:
        wanted = name.lower()
        yield from (value for header, value in headers.items() if header.lower() == wanted and value)
