"""Authenticators and authorizers as SubjectAccessReview and TokenReview use them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podling.apiserver.authn.authenticators import Authenticator
from podling.apiserver.authn.tokens import Owner, ServiceAccountTokens
from podling.apiserver.authz.authorizers import Authorizer, Opinion, opinion_of
from podling.apiserver.request.request import Request, RequestInfo, User
from podling.model.errors import StatusError


class AccessReviewer(msgspec.Struct, frozen=True):
    """Answers reviews; `tokens` also recognises tokens for other audiences than this server."""

    authenticators: Sequence[Authenticator]
    authorizers: Sequence[Authorizer]
    tokens: ServiceAccountTokens

    def may(self, user: User, info: RequestInfo) -> Opinion:
        return opinion_of(self.authorizers, user, info)

    def owner_of(self, token: str, audiences: Sequence[str] = ()) -> Owner | None:
        """The user a bearer token is for, at one of `audiences` (this server, if none is named); None when
        nobody recognises it.
        """
        wanted = audiences or self.tokens.audiences
        try:
            owner = self.tokens.owner_of(token, wanted)
        except StatusError:
            return None
        ours = [audience for audience in self.tokens.audiences if audience in wanted]
        if owner is not None or not ours:
            return owner
        user = self._user_of(token)
        return Owner(user, ours) if user else None

    def _user_of(self, token: str) -> User | None:
        request = Request("GET", "/", headers={"Authorization": f"Bearer {token}"})
        for authenticator in self.authenticators:
            try:
                user = authenticator.authenticate(request)
            except StatusError:
                return None
            if user is not None:
                return user
        return None
