"""R-SYS-4: who a request is from."""

import pytest

from podling.apiserver.authn.authenticators import Authentication
from podling.apiserver.request.context import ANONYMOUS
from podling.apiserver.request.request import Request, User
from podling.model.errors import StatusError, unauthorized

ALICE = User("alice")


class Recognises:
    def __init__(self, user: User | None) -> None:
        self.user = user

    def authenticate(self, request: Request) -> User | None:
        return self.user


def test_the_first_that_recognises_a_credential_answers() -> None:
    ways = [Recognises(None), Recognises(ALICE), Recognises(User("bob"))]
    assert Authentication(ways).known(Request("GET", "/")) == ALICE


def test_no_credential_is_anonymous() -> None:
    assert Authentication([Recognises(None)]).known(Request("GET", "/")) == ANONYMOUS


def test_a_credential_nobody_recognises_is_refused() -> None:
    with pytest.raises(StatusError) as raised:
        Authentication([Recognises(None)]).known(Request("GET", "/", headers={"Authorization": "Bearer x"}))
    assert (raised.value.code, raised.value.message) == (401, "Unauthorized")


def test_a_caller_inside_the_process_is_who_it_says() -> None:
    assert Authentication([Recognises(None)]).known(Request("GET", "/", user=ALICE)) == ALICE


class Refuses:
    def authenticate(self, request: Request) -> User | None:
        raise unauthorized()


def test_what_one_refuses_another_may_know() -> None:
    assert Authentication([Refuses(), Recognises(ALICE)]).known(Request("GET", "/")) == ALICE
    with pytest.raises(StatusError):
        Authentication([Refuses(), Recognises(None)]).known(Request("GET", "/"))


def test_strangers_are_let_in_where_it_is_said() -> None:
    authentication = Authentication([Recognises(None)], is_open=lambda path: path == "/livez")
    assert authentication.known(Request("GET", "/livez")) == ANONYMOUS
    with pytest.raises(StatusError):
        authentication.known(Request("GET", "/livez/ping"))
