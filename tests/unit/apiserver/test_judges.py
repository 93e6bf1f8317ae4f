"""Those who are asked by reviews."""

from __future__ import annotations

from podling.apiserver.authn.x509 import CertificateAuthenticator
from podling.apiserver.authz.authorizer import ALLOW, Decision, Opinion
from podling.apiserver.judges import Judges
from podling.apiserver.request import Request, RequestInfo, User
from podling.model.errors import unauthorized

ANN = User("ann")


class KnowsOneToken:
    def authenticate(self, request: Request) -> User | None:
        if request.headers["Authorization"] != "Bearer good":
            raise unauthorized()
        return ANN


class OnlyAnn:
    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return ALLOW if user == ANN else Opinion(Decision.DENY, "not ann")


def test_whose_token() -> None:
    judges = Judges((CertificateAuthenticator(), KnowsOneToken()), ())
    assert judges.owner_of("good") == ANN
    assert judges.owner_of("bad") is None
    assert Judges((), ()).owner_of("good") is None


def test_who_may() -> None:
    judges = Judges((), (OnlyAnn(),))
    asked = RequestInfo("get", "/x")
    assert judges.may(ANN, asked) == ALLOW
    assert judges.may(User("bob"), asked) == Opinion(Decision.DENY, "not ann")
