"""Requests for certificates: whose are approved, what is signed and for how long, which are removed."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from podling.controllers.certificates import CertificateApprover, CertificateCleaner, CertificateSigner
from podling.controllers.certificates_rules import CertificateAuthority, is_over, issue
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.types.certificates import CertificateSigningRequest

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

KEY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KUBELET, CLIENT = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kube-apiserver-client"
OF = x509.NameOID


def name(common: str, *organizations: str) -> x509.Name:
    parts = [x509.NameAttribute(OF.ORGANIZATION_NAME, one) for one in organizations]
    return x509.Name([*parts, x509.NameAttribute(OF.COMMON_NAME, common)])


def asked(signer: str, subject: x509.Name, **spec: Any) -> dict[str, Any]:
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(KEY, hashes.SHA256())
    return {
        "request": base64.b64encode(pem.public_bytes(Encoding.PEM)).decode(),
        "signerName": signer,
        "usages": ["digital signature", "client auth"],
        **spec,
    }


def certificate(begin: timedelta, end: timedelta) -> x509.Certificate:
    builder = x509.CertificateBuilder(name("ca"), name("ca"), KEY.public_key(), 7)
    builder = builder.not_valid_before(NOW + begin).not_valid_after(NOW + end)
    return builder.sign(KEY, hashes.SHA256())


def authority(days: int = 3650) -> CertificateAuthority:
    return CertificateAuthority(certificate(timedelta(days=-3650), timedelta(days=days)), KEY)


def request(spec: dict[str, Any]) -> CertificateSigningRequest:
    return from_data({"metadata": {"name": "r"}, "spec": spec}, CertificateSigningRequest)


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    requests = cluster.informers.of(CertificateSigningRequest)
    await cluster.run(
        CertificateApprover(cluster.account("certificate-controller"), requests),
        CertificateSigner(cluster.account("certificate-controller"), requests, authority(), cluster.clock),
        CertificateCleaner(cluster.account("certificate-controller"), requests, cluster.clock),
    )
    return cluster


async def outcome(cluster: Cluster, spec: dict[str, Any], approve: bool = False) -> list[str]:
    """The reasons of the conditions, and whether a certificate was issued."""
    await cluster.make(CertificateSigningRequest, "r", "", spec=spec)
    if approve:
        status = {"conditions": [{"type": "Approved", "status": "True", "reason": "ByHand"}]}
        patch = {"status": status}
        await cluster.client.patch(CertificateSigningRequest, "r", "", patch, subresource="approval")
    await cluster.settle()
    found = await cluster.client.get(CertificateSigningRequest, "r")
    return [one.reason for one in found.status.conditions] + ["issued"] * bool(found.status.certificate)


@pytest.mark.parametrize(
    ("spec", "approve", "reasons"),
    [
        (asked(KUBELET, name("system:node:n", "system:nodes")), False, ["AutoApproved", "issued"]),
        (asked(KUBELET, name("n", "system:nodes")), False, []),
        (asked(KUBELET, name("system:node:n", "system:masters")), False, []),
        (asked(CLIENT, name("ann")), False, []),
        (asked(CLIENT, name("ann")), True, ["ByHand", "issued"]),
        (asked(CLIENT, name("ann"), usages=["server auth"]), True, ["ByHand", "SignerValidationFailure"]),
        (asked("example.com/other", name("ann")), True, ["ByHand"]),
    ],
)
async def test_what_becomes_of_a_request(
    started: Cluster, spec: dict[str, Any], approve: bool, reasons: list[str]
) -> None:
    assert await outcome(started, spec, approve) == reasons


async def test_who_may_not_is_asked_again_later(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = cluster.informers.of(CertificateSigningRequest)
    approver = CertificateApprover(cluster.account("certificate-controller"), requests)
    await cluster.make(
        CertificateSigningRequest, "r", "", spec=asked(KUBELET, name("system:node:n", "system:nodes"))
    )

    async def refuse(*_: Any) -> bool:
        return False

    monkeypatch.setattr(approver, "_may", refuse)
    with pytest.raises(StatusError) as refused:
        await cluster.run(approver)
    said = 'recognized csr "r" as [nodeclient] but subject access review was not approved'
    assert refused.value.message == said


@pytest.mark.parametrize(
    ("seconds", "days", "begins", "lasts"),
    [
        (None, 3650, -300, 8760 * 3600 - 300),
        (2**31 - 1, 3650, -300, 8760 * 3600 - 300),
        (600, 3650, -300, 600),
        (1, 3650, -300, 600),
        (8 * 3600 - 1, 3650, -300, 8 * 3600 - 1),
        (8 * 3600, 3650, -300, 8 * 3600 - 300),
        (None, 1, -300, 86400),
    ],
)
def test_how_long_a_certificate_lasts(seconds: int | None, days: int, begins: int, lasts: int) -> None:
    """Seconds from now; never longer than its authority."""
    wanted = request(asked(CLIENT, name("ann"), expirationSeconds=seconds))
    made = x509.load_pem_x509_certificate(issue(wanted, authority(days), NOW))
    assert made.not_valid_before_utc - NOW == timedelta(seconds=begins)
    assert made.not_valid_after_utc - NOW == timedelta(seconds=lasts)


def test_an_authority_may_issue_for_less() -> None:
    """The shortest time that may be asked for is longer than that: it is not given either."""
    short = msgspec.structs.replace(authority(), longest=timedelta(minutes=1))
    for seconds in (None, 600, 3600):
        wanted = request(asked(CLIENT, name("ann"), expirationSeconds=seconds))
        made = x509.load_pem_x509_certificate(issue(wanted, short, NOW))
        assert made.not_valid_after_utc - NOW == timedelta(minutes=1)


def test_an_authority_that_has_expired_issues_nothing() -> None:
    with pytest.raises(ValueError, match=r"the signer has expired: NotAfter=2026-01-02 03:04:05 \+0000 UTC"):
        issue(request(asked(CLIENT, name("ann"))), authority(0), NOW)


def condition(kind: str, minutes: int | None = None) -> dict[str, Any]:
    since = None if minutes is None else (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": kind, "status": "True", "lastUpdateTime": since}


def status(*conditions: dict[str, Any], ends: int | None = None) -> dict[str, Any]:
    """With a certificate that ends in so many days."""
    told: dict[str, Any] = {"conditions": list(conditions)}
    if ends is not None:
        pem = certificate(timedelta(days=-9), timedelta(days=ends)).public_bytes(Encoding.PEM)
        told["certificate"] = base64.b64encode(pem).decode()
    return told


DAY = 24 * 60


@pytest.mark.parametrize(
    ("made", "told", "over"),
    [
        (DAY, status(), False),
        (DAY + 1, status(), True),
        (DAY + 1, status(condition("Odd", DAY + 1)), False),
        (0, status(condition("Approved", 60), ends=1), False),
        (0, status(condition("Approved", 61), ends=1), True),
        (0, status(condition("Approved", 61)), False),
        (0, status(condition("Approved", DAY + 1)), True),
        (0, status(condition("Approved"), ends=1), False),
        (0, status(condition("Approved"), ends=-1), True),
        (0, status(ends=-1), False),
        (0, status(condition("Denied", 60)), False),
        (0, status(condition("Denied", 61)), True),
        (0, status(condition("Approved", 0), condition("Failed", 61)), True),
    ],
)
def test_which_requests_are_over(made: int, told: dict[str, Any], over: bool) -> None:
    created = (NOW - timedelta(minutes=made)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"metadata": {"name": "r", "creationTimestamp": created}, "status": told}
    assert is_over(from_data(body, CertificateSigningRequest), NOW) is over


async def test_they_are_removed_within_the_hour(cluster: Cluster) -> None:
    requests = cluster.informers.of(CertificateSigningRequest)
    cleaner = CertificateCleaner(cluster.account("certificate-controller"), requests, cluster.clock)
    await cluster.run(cleaner)
    for one in ("a", "b"):
        await cluster.make(CertificateSigningRequest, one, "", spec=asked("example.com/s", name("ann")))
        cluster.clock.move(86400)
    await cluster.reconcile(("", ""))
    assert await cluster.names(CertificateSigningRequest) == ["b"]


def test_a_pair_of_files_is_an_authority() -> None:
    pem = authority().certificate.public_bytes(Encoding.PEM)
    keys = [
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        for key in (KEY, ec.generate_private_key(ec.SECP256R1()))
    ]
    assert CertificateAuthority.of_pem(pem, keys[0]).key.public_key() == KEY.public_key()
    with pytest.raises(ValueError, match="not that of the certificate"):
        CertificateAuthority.of_pem(pem, keys[1])
