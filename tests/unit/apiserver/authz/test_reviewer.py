"""Those who are asked by reviews."""

from __future__ import annotations

from typing import Any

from podling.apiserver.authn.authenticators import Authentication, Owner
from podling.apiserver.authn.certificates import CertificateAuthenticator
from podling.apiserver.authn.tokens import ISSUER, ServiceAccountTokens, SigningKey
from podling.apiserver.authz.authorizers import ALLOW, AccessReviewer, Decision, Opinion
from podling.apiserver.request.request import Request, RequestInfo, User
from podling.model.errors import unauthorized
from podling.model.time import SystemClock

ANN = User("ann")


class KnowsOneToken:
    def authenticate(self, request: Request) -> User | None:
        if request.headers["Authorization"] != "Bearer good":
            raise unauthorized()
        return ANN


class OnlyAnn:
    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return ALLOW if user == ANN else Opinion(Decision.DENY, "not ann")


def nothing(type: Any, namespace: str, name: str) -> None:
    """No object is there."""


NOBODY = Authentication(())
TOKENS = ServiceAccountTokens(SigningKey.made(), nothing, SystemClock())


async def test_whose_token() -> None:
    reviewer = AccessReviewer(
        Authentication((CertificateAuthenticator(SystemClock()), KnowsOneToken())), (), TOKENS
    )
    assert await reviewer.owner_of("good") == Owner(ANN, [ISSUER])
    assert await reviewer.owner_of("bad") == "invalid bearer token"
    assert await reviewer.owner_of("good", ["elsewhere"]) == "invalid bearer token"
    assert await AccessReviewer(NOBODY, (), TOKENS).owner_of("good") == "invalid bearer token"


def test_who_may() -> None:
    reviewer = AccessReviewer(NOBODY, (OnlyAnn(),), TOKENS)
    asked = RequestInfo("get", "/x")
    assert reviewer.may(ANN, asked) == ALLOW
    assert reviewer.may(User("bob"), asked) == Opinion(Decision.DENY, "not ann")
