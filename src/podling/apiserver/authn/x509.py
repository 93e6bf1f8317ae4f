"""Client certificates: the common name is the user, each organization a group.

TLS has verified the chain and the purpose before a request is seen here, so only the subject is read.
"""

from __future__ import annotations

from functools import lru_cache

from podling.apiserver.authn.authenticator import AUTHENTICATED
from podling.apiserver.request import Request, Subject, User


class CertificateAuthenticator:
    def authenticate(self, request: Request) -> User | None:
        return None if request.certificate is None else user_of(request.certificate)


@lru_cache(maxsize=1024)
def user_of(subject: Subject) -> User | None:
    """None when the subject has no common name."""
    names: list[str] = []
    groups: list[str] = []
    for relative_name in subject:
        for kind, value in relative_name:
            if kind == "commonName":
                names.append(value)
            elif kind == "organizationName":
                groups.append(value)
    return User(names[-1], (*groups, AUTHENTICATED)) if names else None
