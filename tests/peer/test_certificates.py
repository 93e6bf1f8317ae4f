"""R-SYS-8: requests for certificates are validated, approved and shown as by Kubernetes."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import APPLY, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
NOBODY_ELSE = {"Impersonate-User": "alice", "Impersonate-Group": "system:masters", "Impersonate-Extra-A": "b"}
KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)


def request(*organizations: str, key: CertificateIssuerPrivateKeyTypes = KEY) -> bytes:
    subject = [x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")]
    subject += [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, one) for one in organizations]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def certificate() -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")])
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 7)
    builder = builder.not_valid_before(datetime(2025, 1, 1, tzinfo=UTC))
    builder = builder.not_valid_after(datetime(2035, 1, 1, tzinfo=UTC))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def pem(der: bytes, label: str = "CERTIFICATE REQUEST", header: str = "") -> str:
    lines = base64.encodebytes(der).decode()
    return encoded(f"-----BEGIN {label}-----\n{header}{lines}-----END {label}-----\n")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def forged(der: bytes) -> bytes:
    """Signed by nobody: `alice` became `elice`."""
    return der.replace(b"alice", b"elice")


DER, RSA_DER = request("team"), request(key=RSA_KEY)
ISSUED = pem(certificate(), "CERTIFICATE")
GOOD = base64.b64decode(pem(DER)).decode()
BASE: dict[str, Any] = {
    "apiVersion": "certificates.k8s.io/v1",
    "kind": "CertificateSigningRequest",
    "metadata": {"name": "r"},
    "spec": {"request": pem(DER), "signerName": "example.com/signer", "usages": ["client auth"]},
}
CREATED: list[tuple[str, Any]] = [
    ("metadata.name", "No_Name"),
    ("metadata.name", "a:b"),
    ("metadata.namespace", "default"),
    ("metadata.labels", {"a": "-"}),
    ("spec", GONE),
    ("spec.unknown", 1),
    ("spec.request", GONE),
    ("spec.request", ""),
    ("spec.request", "?"),
    ("spec.request", encoded("text")),
    ("spec.request", pem(DER, "NEW CERTIFICATE REQUEST")),
    ("spec.request", ISSUED),
    ("spec.request", pem(RSA_DER)),
    ("spec.request", pem(forged(DER))),
    ("spec.request", pem(forged(RSA_DER))),
    ("spec.request", pem(DER, header="Key: value\n\n")),
    ("spec.request", encoded(f"Text before.\n{GOOD}and after.")),
    ("spec.request", encoded(GOOD + GOOD)),
    ("spec.request", encoded(GOOD.replace("\n", "\r\n"))),
    ("spec.request", encoded(GOOD.replace("-----END", "----END"))),
    ("spec.request", encoded(GOOD.replace("MII", "M?I", 1))),
    ("spec.usages", GONE),
    ("spec.usages", []),
    ("spec.usages", ["signing", "digital signature", "key encipherment", "server auth"]),
    ("spec.usages", ["client auth", "odd"]),
    ("spec.usages", ["odd", "odd"]),
    ("spec.usages", ["client auth", "client auth"]),
    ("spec.signerName", GONE),
    ("spec.signerName", ""),
    ("spec.signerName", "kubernetes.io/legacy-unknown"),
    ("spec.signerName", "kubernetes.io/kubelet-serving"),
    ("spec.signerName", "kubernetes.io/kube-apiserver-client"),
    ("spec.signerName", "signer"),
    ("spec.signerName", "example/signer"),
    ("spec.signerName", "example.com/a/b"),
    ("spec.signerName", "Example.com/Signer"),
    ("spec.signerName", "example.com/a.b"),
    ("spec.signerName", "example.com/"),
    ("spec.signerName", "example.com/" + ".".join(["a" * 200] * 3)),
    ("spec.expirationSeconds", 599),
    ("spec.expirationSeconds", 600),
    ("spec.expirationSeconds", -1),
    ("spec.expirationSeconds", "600"),
    ("spec.username", "mallory"),
    ("spec.uid", "11"),
    ("spec.groups", ["system:masters"]),
    ("spec.extra", {"a": ["c"]}),
    ("status", {"certificate": ISSUED}),
    ("status", {"conditions": [{"type": "Approved", "status": "True"}]}),
]
UPDATED: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("metadata.labels", {"a": "-"}),
    ("metadata.uid", "11111111-1111-1111-1111-111111111111"),
    ("spec.request", pem(RSA_DER)),
    ("spec.signerName", "example.com/other"),
    ("spec.usages", ["server auth"]),
    ("spec.usages", []),
    ("spec.username", "mallory"),
    ("spec.expirationSeconds", 5),
    ("status.certificate", ISSUED),
    ("status.conditions", [{"type": "Approved", "status": "True"}]),
]


def with_names(names: bytes) -> bytes:
    """A request whose alternative names are encoded so."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    extension = x509.UnrecognizedExtension(x509.OID_SUBJECT_ALTERNATIVE_NAME, names)
    return (
        builder.add_extension(extension, critical=False).sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)
    )


def one_name(tag: int, value: bytes) -> bytes:
    def element(tag: int, value: bytes) -> bytes:
        length = len(value)
        size = bytes([length]) if length < 0x80 else bytes([0x82, *length.to_bytes(2, "big")])
        if 0x80 <= length < 0x100:
            size = bytes([0x81, length])
        return bytes([tag]) + size + value

    return element(0x30, element(tag, value))


EMAIL, DNS, URI, IP = 0x81, 0x82, 0x86, 0x87
SMALL_RSA = base64.b64decode(
    "MIHJMHUCAQAwEDEOMAwGA1UEAwwFYWxpY2UwXDANBgkqhkiG9w0BAQEFAANLADBIAkEA1mRUk3BQJuJeKBSZSx5Gcp"
    "DIypEPRAxlHfGu2LwTxPchEpMB7bz0qHBxkKl/YQIRrjyW3DlAwMt58r712NPX9QIDAQABoAAwDQYJKoZIhvcNAQEL"
    "BQADQQA3//lfgyHFHZ+zwWl2H8qP852+46j6nFSMW916BdRLhZT/Q3vPodjKx9RBS5MVAkF1sQauI7HhT4eLhZDLX9"
    "0U"
)
"""Signed with a key of 512 bits, which the library here makes no more."""
NAMES = [
    *(one_name(IP, b"1" * length) for length in (0, 3, 4, 5, 8, 16, 17)),
    *(one_name(DNS, value) for value in (b"", b" ", b"a_b", b"*.a", b"a..b", b"a.", b"a\0b", b"\xc3\xa4")),
    *(one_name(EMAIL, value) for value in (b"a@b", b"", b"ab", b"a b@c", b"\xff")),
    *(
        one_name(URI, value)
        for value in (
            b"spiffe://a/b", b"a/b", b"", b":a", b"http://[", b"http://a b/", b"http://a_b/", b"http://a:1/",
            b"http://a:x/", b"http://a/%zz", b"http://a/\x01", b"http://a../", b"http://a./", b"http://.a/",
            b"http://*.a/", b"http://[::1]/", b"http://u:p@a/", b"\xff", b"http://%C3%A4/",
            b"http://" + b"a" * 64, b"http://" + b"a." * 126 + b"a", b"http://" + b"a." * 127 + b"a",
            b"http://" + b"a" * 300, b"http://a%2eb/", b"http://a%20b/", b"http://a%25b/",
        )
    ),
    one_name(0x88, b"\x2a\x03"), one_name(0x89, b"a"), one_name(0x0C, b"a"), one_name(DNS, b"a") + b"\0",
    b"", b"\x04\x00", b"\x30\x00", b"\x30\x05\x82\x01", b"\x30\x81\x03\x82\x01a", b"\x30\x04\x9f\x1f\x01a",
]  # fmt: skip
HASHES = (hashes.SHA224(), hashes.SHA256(), hashes.SHA384(), hashes.SHA512(), hashes.SHA3_256())
CURVES = (
    ec.SECP192R1,
    ec.SECP224R1,
    ec.SECP256R1,
    ec.SECP384R1,
    ec.SECP521R1,
    ec.SECP256K1,
    ec.BrainpoolP256R1,
)


def signed(key: Any, hashed: Any, pss: padding.PSS | None = None) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    return builder.sign(key, hashed, rsa_padding=pss).public_bytes(Encoding.DER)


SIGNED = [
    *(signed(ec.generate_private_key(curve()), one) for curve in CURVES for one in HASHES),
    *(signed(RSA_KEY, one) for one in HASHES),
    *(
        signed(RSA_KEY, one, padding.PSS(padding.MGF1(one), length))
        for one in (hashes.SHA256(), hashes.SHA512()) for length in (20, 32, 64)
    ),
    signed(dsa.generate_private_key(2048), hashes.SHA256()),
    signed(ed25519.Ed25519PrivateKey.generate(), None),
    signed(ed448.Ed448PrivateKey.generate(), None),
    SMALL_RSA,
]  # fmt: skip


def asking(requests: Iterable[bytes]) -> list[tuple[str, Any]]:
    return [("spec.request", pem(one)) for one in requests]


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "R", "message": "m", **more}


DECIDED: list[tuple[str, Any]] = [
    ("spec.signerName", "example.com/other"),
    ("metadata.labels", {"from": "subresource"}),
    ("status.certificate", encoded("text")),
    ("status.certificate", pem(DER)),
    ("status.certificate", pem(certificate(), "CERTIFICATE", "Key: value\n\n")),
    ("status.conditions", [condition("")]),
    ("status.conditions", [condition("Odd")]),
    ("status.conditions", [condition("Odd", "Maybe")]),
    ("status.conditions", [condition("Odd", "")]),
    ("status.conditions", [condition("Odd", "False", lastUpdateTime="2020-01-02T03:04:05Z")]),
    ("status.conditions", [condition("Odd"), condition("Odd")]),
    ("status.conditions", [condition("Approved", "False")]),
    ("status.conditions", [condition("Denied", "Unknown")]),
    ("status.conditions", [condition("Approved", "")]),
    ("status.conditions", [condition("Approved"), condition("Approved")]),
    ("status.conditions", [condition("Approved"), condition("Denied")]),
    ("status.conditions", [condition("Failed", "False")]),
    ("status.conditions", [condition("Approved")]),
    ("status.conditions", [condition("Approved", message="other")]),
    ("status.conditions", [condition("Approved"), condition("Odd")]),
    ("status.conditions", [condition("Denied")]),
    ("status.conditions", []),
    ("status.conditions", [condition("Failed")]),
    ("status.conditions", [condition("Approved"), condition("Failed")]),
    ("status.conditions", [condition("Approved"), condition("Failed", message="other")]),
    ("status.conditions", [condition("Approved")]),
    ("status.certificate", ISSUED),
    ("status.certificate", encoded(base64.b64decode(ISSUED).decode() * 2)),
    ("status.certificate", None),
]


def through(subresource: str, asks: Iterable[Ask]) -> list[Ask]:
    """The patches are of the subresource."""
    return [
        msgspec.structs.replace(one, target=f"{one.target}/{subresource}") if one.method == "PATCH" else one
        for one in asks
    ]


def by_alice(asks: Iterable[Ask]) -> list[Ask]:
    """Administrators have other names on other servers."""
    return [msgspec.structs.replace(one, headers={**one.headers, **NOBODY_ELSE}) for one in asks]


def named(name: str) -> dict[str, Any]:
    return changed(BASE, "metadata.name", name)


def patch(name: str, subresource: str, **status: Any) -> Ask:
    target = f"{REQUESTS}/{name}/{subresource}"
    return Ask("PATCH", target, {"status": status}, {"Content_Type": MERGE_PATCH})


APPROVE = {"conditions": [condition("Approved")]}
DENY = {"conditions": [condition("Denied")]}
APPLIED = changed(named("w"), "metadata.labels", {"e": "f"})
CLIENT = changed(named("n"), "spec.signerName", "kubernetes.io/kube-apiserver-client")
SEQUENCES = [
    Compared("csr: managed", by_alice([
        Ask("POST", REQUESTS, changed(named("w"), "metadata.labels", {"a": "b"})),
        patch("w", "status", certificate=ISSUED, conditions=[condition("Failed")]),
        patch("w", "approval", **APPROVE),
        patch("w", "approval", conditions=[condition("Approved"), condition("Failed", message="other")]),
        patch("w", "status", conditions=[condition("Approved", message="other"), condition("Failed")]),
        Ask("PATCH", f"{REQUESTS}/w", {"metadata": {"labels": {"c": "d"}}}, {"Content_Type": MERGE_PATCH}),
        Ask("GET", f"{REQUESTS}/w"),
        *(Ask("PATCH", f"{REQUESTS}/{at}?fieldManager=other{force}", changed(APPLIED, "status", APPROVE),
              {"Content_Type": APPLY})
          for at, force in [("w", ""), ("w/approval", "&force=true"), ("w/status", "")]),
        Ask("GET", f"{REQUESTS}/w"),
    ])),
    Compared("csr: created", by_alice(created(REQUESTS, named("c"), CREATED))),
    Compared("csr: names", by_alice(created(REQUESTS, named("x"), asking(with_names(one) for one in NAMES)))),
    Compared("csr: signed", by_alice(created(REQUESTS, named("y"), asking(SIGNED)))),
    Compared("csr: updated", by_alice(updated(REQUESTS, named("u"), UPDATED))),
    Compared("csr: approval", by_alice(through("approval", updated(REQUESTS, named("a"), DECIDED)))),
    Compared("csr: status", by_alice(through("status", updated(REQUESTS, named("s"), DECIDED)))),
    Compared("csr: issued", by_alice([
        Ask("POST", REQUESTS, named("i")),
        patch("i", "approval", **APPROVE),
        *(patch("i", "status", **{path.partition(".")[2]: value})
          for path, value in DECIDED if path.startswith("status.")),
        patch("i", "approval", certificate=None),
        Ask("GET", f"{REQUESTS}/i/status"),
        Ask("GET", f"{REQUESTS}/i/approval"),
        Ask("POST", f"{REQUESTS}/i/approval", named("i")),
        Ask("DELETE", f"{REQUESTS}/i/approval"),
        Ask("PUT", f"{REQUESTS}/i/approval", changed(named("i"), "status", APPROVE)),
        Ask("PUT", f"{REQUESTS}/i/status", changed(named("i"), "status", {})),
        Ask("PUT", f"{REQUESTS}/i", changed(named("i"), "spec", {})),
        Ask("PUT", f"{REQUESTS}/missing", named("missing")),
        Ask("GET", f"{REQUESTS}/i"),
    ])),
    Compared("csr: restricted", by_alice([
        Ask("POST", REQUESTS, changed(CLIENT, "spec.request", pem(request("system:masters")))),
        Ask("POST", REQUESTS, changed(CLIENT, "spec.request", pem(request("a", "system:masters")))),
        Ask("POST", REQUESTS, changed(CLIENT, "spec.request", pem(forged(request("system:masters"))))),
        Ask("POST", REQUESTS, changed(CLIENT, "spec.request", encoded("text"))),
        Ask("POST", REQUESTS, CLIENT),
        Ask("POST", REQUESTS, changed(named("m"), "spec.request", pem(request("system:masters")))),
        Ask("DELETE", f"{REQUESTS}/n"),
    ])),
    Compared("csr: shown", by_alice([
        Ask("POST", REQUESTS, changed(named("t"), "spec.expirationSeconds", 7000)),
        Ask("GET", f"{REQUESTS}/t", headers=TABLE),
        patch("t", "status", certificate=ISSUED),
        Ask("GET", f"{REQUESTS}/t", headers=TABLE),
        patch("t", "approval", **APPROVE),
        Ask("GET", f"{REQUESTS}/t", headers=TABLE),
        patch("t", "status", conditions=[condition("Approved"), condition("Failed")]),
        Ask("GET", f"{REQUESTS}/t", headers=TABLE),
        Ask("POST", REQUESTS, named("d")),
        patch("d", "approval", **DENY),
        patch("d", "approval", **APPROVE),
        Ask("GET", f"{REQUESTS}/d", headers=TABLE),
        Ask("GET", f"{REQUESTS}?fieldSelector=metadata.name%3Dd,spec.signerName%3Dexample.com/signer"),
        Ask("GET", f"{REQUESTS}?fieldSelector=spec.signerName%3Dexample.com/none"),
        Ask("GET", f"{REQUESTS}?fieldSelector=spec.username%3Dalice"),
        Ask("DELETE", f"{REQUESTS}/d", {"propagationPolicy": "Orphan"}),
        Ask("DELETE", f"{REQUESTS}/t"),
    ])),
]  # fmt: skip


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_certificates(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, sequence.name.replace(": ", "-"), kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
