"""Those who say who someone is and what he may do, for reviews to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podling.apiserver.authn.authenticator import Authenticator
from podling.apiserver.authz.authorizer import Authorizer, Opinion, opinion_of
from podling.apiserver.request import Request, RequestInfo, User
from podling.model.errors import StatusError


@dataclass(frozen=True, slots=True)
class Judges:
    authenticators: Sequence[Authenticator]
    authorizers: Sequence[Authorizer]

    def may(self, user: User, info: RequestInfo) -> Opinion:
        return opinion_of(self.authorizers, user, info)

    def owner_of(self, token: str) -> User | None:
        """The user a bearer token is for; None when nobody recognises it."""
        request = Request("GET", "/", headers={"Authorization": f"Bearer {token}"})
        for authenticator in self.authenticators:
            try:
                user = authenticator.authenticate(request)
            except StatusError:
                return None
            if user is not None:
                return user
        return None
