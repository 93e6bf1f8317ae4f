"""Authentication: the ordered ways to learn who sent a request.

Each looks at one kind of credential. The first that recognises one answers; a request that carries none is
`system:anonymous`, one that carries only credentials nobody recognises is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podling.apiserver.request import Request, User
from podling.model.errors import unauthorized

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


class Authenticator(Protocol):
    def authenticate(self, request: Request) -> User | None:
        """None when the request has no credential of this kind. Raises StatusError 401 for a bad one."""
        ...


def authenticate(authenticators: Sequence[Authenticator], request: Request) -> User:
    """Raises StatusError 401."""
    if request.user is not None:
        return request.user
    for authenticator in authenticators:
        user = authenticator.authenticate(request)
        if user is not None:
            return user
    if "Authorization" in request.headers:
        raise unauthorized()
    return ANONYMOUS
