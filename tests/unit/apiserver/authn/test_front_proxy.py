"""Issue 13: a proxy is believed who its client is, if it shows the certificate of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec.structs import replace

from podling.apiserver.authn.authenticators import Authentication, says_who
from podling.apiserver.authn.certificates import CertificateAuthenticator, Issuers
from podling.apiserver.authn.front_proxy import FrontProxy, Headers, user_in
from podling.apiserver.request.request import Certificate, Request, User
from podling.machine.pki import Authority
from podling.model.errors import StatusError
from podling.model.time import SystemClock
from podling.process.tls import Lifetime

HEADERS = Headers(
    ("front",), ("X-Remote-User",), ("X-Remote-Uid",), ("X-Remote-Group",), ("X-Remote-Extra-",)
)


def of(authority: Authority, name: str, **headers: str) -> Request:
    pem = authority.client(name, name).certificate.read_bytes()
    encoded = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    named = {header.replace("_", "-"): value for header, value in headers.items()}
    shown = Certificate(((("commonName", name),),), encoded, fingerprint=encoded.hex())
    return Request("GET", "/", certificate=shown, headers=named)


@pytest.fixture
def authorities(tmp_path: Path) -> tuple[Authority, Authority, Authentication]:
    proxies, clients = (Authority(tmp_path / name, datetime.now(UTC)) for name in ("proxies", "clients"))
    ways = (
        FrontProxy(SystemClock(), Issuers(proxies.ca.certificate.read_bytes()), HEADERS),
        CertificateAuthenticator(SystemClock(), Issuers(clients.ca.certificate.read_bytes())),
    )
    return proxies, clients, Authentication(ways)


def test_only_a_proxy_is_believed(authorities: tuple[Authority, Authority, Authentication]) -> None:
    proxies, clients, authentication = authorities
    zoe = authentication.known(of(proxies, "front", X_Remote_User="zoe"))
    assert zoe == User("zoe", ("system:authenticated",))
    # The headers of others say nothing.
    front = authentication.known(of(clients, "front", X_Remote_User="zoe"))
    assert front is not None and front.name == "front"
    anonymous = authentication.known(Request("GET", "/", headers={"X-Remote-User": "zoe"}))
    assert anonymous is not None and anonymous.name == "system:anonymous"


def test_a_proxy_out_of_its_time_is_not_believed(
    authorities: tuple[Authority, Authority, Authentication],
) -> None:
    proxies, _, authentication = authorities
    late = of(proxies, "front", X_Remote_User="zoe")
    assert late.certificate is not None
    now, day = datetime.now(UTC), timedelta(days=1)
    late.certificate = replace(late.certificate, lifetime=Lifetime(now - 2 * day, now - day))
    with pytest.raises(StatusError) as raised:
        authentication.known(late)
    assert raised.value.code == 401


def test_who_has_signed_is_looked_for_in_the_chain(
    authorities: tuple[Authority, Authority, Authentication],
) -> None:
    proxies, clients, _ = authorities
    known, other = (
        x509.load_pem_x509_certificate(one.ca.certificate.read_bytes()).public_bytes(Encoding.DER)
        for one in (proxies, clients)
    )
    issuers = Issuers(proxies.ca.certificate.read_bytes())
    assert not issuers.signed(Certificate((), b"leaf", (b"between", other), "1"))
    assert issuers.signed(Certificate((), b"leaf", (b"between", known), "1"))
    assert issuers.signed(Certificate((), b"leaf", (), "1")), "of a resumed session"
    assert issuers.signed(Certificate((), known, (other,), "2")), "the authority itself"


@pytest.mark.parametrize(("name", "headers"), [("stranger", {"X_Remote_User": "zoe"}), ("front", {})])
def test_a_proxy_is_no_client(
    authorities: tuple[Authority, Authority, Authentication], name: str, headers: dict[str, str]
) -> None:
    proxies, _, authentication = authorities
    with pytest.raises(StatusError) as raised:
        authentication.known(of(proxies, name, **headers))
    assert raised.value.code == 401


def test_what_the_headers_say() -> None:
    said = {
        "x-remote-user": "zoe",
        "X-Remote-Uid": "7",
        "X-Remote-Group": "devs",
        "X-Remote-Extra-Acme%2FKey": "1",
        "X-Remote-Extra-Broken%zz": "2",
    }
    extra = (("acme/key", ("1",)), ("broken%zz", ("2",)))
    assert user_in(said, HEADERS) == User("zoe", ("devs", "system:authenticated"), "7", extra)


def test_no_header_that_says_who_is_passed_on() -> None:
    ours = ["X-Remote-User", "x-remote-group", "X-REMOTE-UID", "X-Remote-Extra-a", "Impersonate-User"]
    assert [header for header in (*ours, "Accept", "X-Remote", "Remote-User") if says_who(header)] == ours
