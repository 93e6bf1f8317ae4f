"""R-SYS-4: a client certificate's subject is user and groups."""

import pytest

from podling.apiserver.authn.authenticators import CertificateAuthenticator
from podling.apiserver.request.request import Request, Subject, User

SUBJECTS: list[tuple[Subject | None, User | None]] = [
    (None, None),
    ((), None),
    (((("organizationName", "system:masters"),),), None),
    (((("commonName", "alice"),),), User("alice", ("system:authenticated",))),
    (
        ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "c"),)),
        User("c", ("a", "b", "system:authenticated")),
    ),
    (((("organizationName", "a"), ("commonName", "c")),), User("c", ("a", "system:authenticated"))),
]


@pytest.mark.parametrize(("subject", "user"), SUBJECTS)
def test_subjects(subject: Subject | None, user: User | None) -> None:
    assert CertificateAuthenticator().authenticate(Request("GET", "/", certificate=subject)) == user
