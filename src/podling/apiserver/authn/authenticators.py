"""Authentication by client certificate, the order in which authenticators are asked, and the `Impersonate-`
headers of a request.

Each authenticator looks at one kind of credential, and the first that recognises one answers. A request
without credentials is from `system:anonymous`; one whose credentials nobody recognises is refused. TLS has
already verified the certificate's chain and purpose. Whether the user may impersonate is decided in
`authz/impersonation.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote

from podling.apiserver.request.context import ANONYMOUS, AUTHENTICATED
from podling.apiserver.request.request import Request, Subject, User
from podling.model.errors import bad_request, unauthorized

SCHEME = "bearer"
PREFIX = "impersonate-"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
USER, UID, GROUP, EXTRA = (f"{PREFIX}{what}" for what in ("user", "uid", "group", "extra-"))
_BROKEN_ESCAPE = re.compile("%(?![0-9a-f]{2})")


class Authenticator(Protocol):
    def authenticate(self, request: Request) -> User | None:
        """The user; None if the request has no credential of this kind. Raises StatusError 401 for an invalid
        one."""
        ...


def authenticate(authenticators: Sequence[Authenticator], request: Request) -> User:
    """The user of a request. Raises StatusError 401."""
    if request.user is not None:
        return request.user
    for authenticator in authenticators:
        user = authenticator.authenticate(request)
        if user is not None:
            return user
    if bearer_token(request):
        raise unauthorized()
    return ANONYMOUS


def bearer_token(request: Request) -> str:
    """The bearer token of a request, empty if it has none. As Kubernetes reads it, what follows the token is
    passed over, and after two blanks there is none."""
    words = request.headers.get("Authorization", "").strip().split(" ", 2)
    return words[1] if len(words) > 1 and words[0].lower() == SCHEME else ""


def is_about_impersonation(header: str) -> bool:
    """Whether a header is about impersonation; such headers are not passed on by proxies."""
    return header[: len(PREFIX)].lower() == PREFIX


def wanted_user(headers: Mapping[str, str]) -> User | None:
    """The user that the `Impersonate-` headers name; None if there are none. Raises StatusError 400 for
    groups, uid or extra without a user. All items of `headers` are looked at, since a header may occur
    several times."""
    # The first letter is looked at here, because it spares a call for most headers of every request.
    asked = [
        (name.lower(), value)
        for name, value in headers.items()
        if name[:1] in "Ii" and is_about_impersonation(name)
    ]
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


class CertificateAuthenticator:
    def authenticate(self, request: Request) -> User | None:
        if request.certificate is None:
            return None
        return user_of(request.certificate, request.fingerprint)


@lru_cache(maxsize=1024)
def user_of(subject: Subject, fingerprint: str = "") -> User | None:
    """The user is the common name, its groups are the organizations, and `extra` says which certificate it
    was. None if there is no common name."""
    names: list[str] = []
    groups: list[str] = []
    for relative_name in subject:
        for kind, value in relative_name:
            if kind == "commonName":
                names.append(value)
            elif kind == "organizationName":
                groups.append(value)
    if not names:
        return None
    extra = ((CREDENTIAL_ID, (f"X509SHA256={fingerprint}",)),) if fingerprint else ()
    return User(names[-1], (*groups, AUTHENTICATED), extra=extra)
