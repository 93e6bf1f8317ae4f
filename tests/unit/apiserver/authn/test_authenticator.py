"""R-SYS-4: who a request is from."""

import pytest

from podling.apiserver.authn.authenticators import authenticate
from podling.apiserver.request.context import ANONYMOUS
from podling.apiserver.request.request import Request, User
from podling.model.errors import StatusError

ALICE = User("alice")


class Recognises:
    def __init__(self, user: User | None) -> None:
        self.user = user

    def authenticate(self, request: Request) -> User | None:
        return self.user


def test_the_first_that_recognises_a_credential_answers() -> None:
    ways = [Recognises(None), Recognises(ALICE), Recognises(User("bob"))]
    assert authenticate(ways, Request("GET", "/")) == ALICE


def test_no_credential_is_anonymous() -> None:
    assert authenticate([Recognises(None)], Request("GET", "/")) == ANONYMOUS


def test_a_credential_nobody_recognises_is_refused() -> None:
    with pytest.raises(StatusError) as raised:
        authenticate([Recognises(None)], Request("GET", "/", headers={"Authorization": "Bearer x"}))
    assert (raised.value.code, raised.value.message) == (401, "Unauthorized")


def test_a_caller_inside_the_process_is_who_it_says() -> None:
    assert authenticate([Recognises(None)], Request("GET", "/", user=ALICE)) == ALICE
