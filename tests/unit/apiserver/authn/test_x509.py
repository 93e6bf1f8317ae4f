"""R-SYS-4: a client certificate's subject is user, groups and uid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from podling.apiserver.authn.certificates import CertificateAuthenticator
from podling.apiserver.request.request import Certificate, Request, User
from podling.model.errors import StatusError
from podling.model.time import SystemClock
from podling.process.tls import Lifetime

EXTRA = (("authentication.kubernetes.io/credential-id", ("X509SHA256=ab12",)),)
ALL = "system:authenticated"
CN, GROUP, UID = "commonName", "organizationName", "1.3.6.1.4.1.57683.2"


def of(*names: tuple[str, str]) -> Request:
    """Each name by itself in the subject."""
    subject = tuple((one,) for one in names)
    return Request("GET", "/", certificate=Certificate(subject, fingerprint="ab12"))


def user(name: str, *groups: str, uid: str = "") -> User:
    return User(name, groups, uid, EXTRA)


USERS = [
    (of((CN, "alice")), user("alice", ALL)),
    (of((GROUP, "a"), (CN, "c"), (GROUP, "b"), (GROUP, "a")), user("c", "a", "b", "a", ALL)),
    (of((CN, "alice"), (CN, "bob")), user("bob", ALL)),
    (of((CN, "alice"), (UID, "7")), user("alice", ALL, uid="7")),
    # Who says what he is has said it.
    (of((CN, "alice"), (GROUP, ALL)), user("alice", ALL)),
    (of((CN, "alice"), (GROUP, "system:unauthenticated")), user("alice", "system:unauthenticated")),
    (of((CN, "system:anonymous")), user("system:anonymous")),
]


@pytest.mark.parametrize(("shown", "user"), USERS)
def test_whose_certificate(shown: Request, user: User) -> None:
    assert CertificateAuthenticator(SystemClock()).authenticate(shown) == user


def test_names_may_stand_together() -> None:
    together = (((GROUP, "a"), (CN, "c")),)
    shown = Request("GET", "/", certificate=Certificate(together, fingerprint="ab12"))
    assert CertificateAuthenticator(SystemClock()).authenticate(shown) == user("c", "a", ALL)


NOBODY = [(), ((GROUP, "system:masters"),), ((CN, ""),), ((CN, "alice"), (CN, "")), ((UID, "7"),)]


@pytest.mark.parametrize("names", NOBODY)
def test_a_certificate_without_a_name_is_nobody_s(names: tuple[tuple[str, str], ...]) -> None:
    assert CertificateAuthenticator(SystemClock()).authenticate(of(*names)) is None


def test_none_is_nobody_s() -> None:
    assert CertificateAuthenticator(SystemClock()).authenticate(Request("GET", "/")) is None


@pytest.mark.parametrize("uids", [("7", "8"), ("",)])
def test_a_uid_that_nobody_can_tell_is_refused(uids: tuple[str, ...]) -> None:
    with pytest.raises(StatusError) as raised:
        CertificateAuthenticator(SystemClock()).authenticate(of((CN, "alice"), *((UID, one) for one in uids)))
    assert raised.value.code == 401


NOW = datetime(2026, 1, 2, tzinfo=UTC)
DAY, MOMENT = timedelta(days=1), timedelta(microseconds=1)


class StandingClock:
    def now(self) -> datetime:
        return NOW


@pytest.mark.parametrize(
    ("lifetime", "counts"),
    [
        (Lifetime(NOW - DAY, NOW + DAY), True),
        (Lifetime(NOW, NOW), True),
        (Lifetime(NOW + MOMENT, NOW + DAY), False),
        (Lifetime(NOW - DAY, NOW - MOMENT), False),
    ],
)
def test_each_request_is_asked_whether_its_certificate_is_of_the_time(
    lifetime: Lifetime, counts: bool
) -> None:
    """Also on a connection that is older than that."""
    shown = Request("GET", "/", certificate=Certificate((((CN, "ann"),),), lifetime=lifetime))
    authenticator = CertificateAuthenticator(StandingClock())
    if counts:
        assert authenticator.authenticate(shown) is not None
    else:
        with pytest.raises(StatusError) as raised:
            authenticator.authenticate(shown)
        assert raised.value.code == 401
