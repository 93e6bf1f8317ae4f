"""Authentication by client certificate. TLS has already verified its chain and purpose; whether it is of the
time is looked at for each request, and where TLS believes more than one authority, which of them the chain
goes up to.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from podling.apiserver.authn.authenticators import authenticated
from podling.apiserver.request.request import Certificate, Request, Subject, User
from podling.model.errors import unauthorized
from podling.model.time import Clock

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
UID = "1.3.6.1.4.1.57683.2"
"""The type of the part of a subject that is the user's uid."""
REMEMBERED = 1024


class Issuers:
    """Authorities, and whether the chain of a certificate goes up to one of them."""

    def __init__(self, pem: bytes) -> None:
        """Raises ValueError for anything but certificates."""
        self._authorities = x509.load_pem_x509_certificates(pem)
        self._encoded = frozenset(one.public_bytes(Encoding.DER) for one in self._authorities)
        self._signed: set[str] = set()
        """Fingerprints: of a resumed session the chain is not known any more."""

    def signed(self, certificate: Certificate) -> bool:
        if certificate.fingerprint in self._signed:
            return True
        if not self._has_signed(certificate):
            return False
        if len(self._signed) >= REMEMBERED:
            self._signed.clear()
        self._signed.add(certificate.fingerprint)
        return True

    def _has_signed(self, certificate: Certificate) -> bool:
        if certificate.issuers:
            return not self._encoded.isdisjoint((certificate.encoded, *certificate.issuers))
        shown = x509.load_der_x509_certificate(certificate.encoded)
        return any(_is_issued_by(shown, authority) for authority in self._authorities)


def _is_issued_by(shown: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        shown.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


class CertificateAuthenticator:
    """`authority`: who must have signed the certificate of a client, if TLS believes others, too."""

    def __init__(self, clock: Clock, authority: Issuers | None = None) -> None:
        self._clock = clock
        self._authority = authority

    def authenticate(self, request: Request) -> User | None:
        """Raises StatusError 401 for a certificate that is out of its time or of another authority, and for
        one whose uid nobody can tell."""
        if request.certificate is None:
            return None
        if not request.certificate.lifetime.has(self._clock.now()):
            raise unauthorized()
        if self._authority is not None and not self._authority.signed(request.certificate):
            raise unauthorized()
        return user_of(request.certificate)


@lru_cache(maxsize=REMEMBERED)
def user_of(certificate: Certificate) -> User | None:
    """The user is the common name, its groups are the organizations, and `extra` says which certificate it
    was. None if there is no common name. Raises StatusError 401."""
    name, uids = common_name(certificate.subject), values_of(certificate.subject, UID)
    if not name:
        return None
    if uids and (len(uids) > 1 or not uids[0]):
        raise unauthorized()
    groups = values_of(certificate.subject, "organizationName")
    extra = ((CREDENTIAL_ID, (f"X509SHA256={certificate.fingerprint}",)),)
    return authenticated(User(name, groups, uids[0] if uids else "", extra))


def common_name(subject: Subject) -> str:
    """The last one, as in Go; empty if there is none."""
    names = values_of(subject, "commonName")
    return names[-1] if names else ""


def values_of(subject: Subject, wanted: str) -> tuple[str, ...]:
    return tuple(value for names in subject for kind, value in names if kind == wanted)
