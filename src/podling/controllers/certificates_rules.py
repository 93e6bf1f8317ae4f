"""What the controllers of CertificateSigningRequests decide, and the certificate that is issued. Pure.

What Kubernetes' three signers ask of a request is in `fault`; what they change in it is in `issue`. All of it
is compared with the kube-controller-manager in `tests/peer/test_certificate_controllers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podling.model.rules.certificates import (
    APPROVED,
    CLIENT_SIGNER,
    DENIED,
    FAILED,
    KUBELET_CLIENT_SIGNER,
    KUBELET_SERVING_SIGNER,
    NODE,
    NODES,
    attributes_of,
    blocks,
    conditions_of,
    read_request,
)
from podling.model.time import parse_optional, parse_time
from podling.model.types.certificates import CertificateSigningRequest

SELF_NODE_CLIENT, NODE_CLIENT = "selfnodeclient", "nodeclient"
"""Subresources of CertificateSigningRequests that nobody serves: who may create one gets what it names
approved."""
CLIENT_AUTH, SERVER_AUTH = "client auth", "server auth"
DIGITAL_SIGNATURE, KEY_ENCIPHERMENT = "digital signature", "key encipherment"
EXTENDED = {CLIENT_AUTH: ExtendedKeyUsageOID.CLIENT_AUTH, SERVER_AUTH: ExtendedKeyUsageOID.SERVER_AUTH}
SUBJECT = (
    NameOID.COUNTRY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COMMON_NAME,
    NameOID.SERIAL_NUMBER,
)
"""The attributes of a subject that are issued, in Go's order; others are left out."""
SINGLE = frozenset({NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER})
"""Of these the last counts; several of the others are one relative name together."""
SAN_KINDS: dict[str, type[x509.GeneralName]] = {
    "DNS": x509.DNSName,
    "Email": x509.RFC822Name,
    "IP": x509.IPAddress,
    "URI": x509.UniformResourceIdentifier,
}
"""The kinds of alternative names that are issued, in Go's order; others are left out."""
SIGNERS = frozenset({CLIENT_SIGNER, KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER})

LONGEST, SHORTEST = timedelta(hours=8760), timedelta(minutes=10)
BACKDATE = timedelta(minutes=5)
SHORT = timedelta(hours=8)
"""A certificate for less time has all of it after now; of a longer one `BACKDATE` is a part."""
DECIDED_FOR, PENDING_FOR = timedelta(hours=1), timedelta(hours=24)
"""How long requests are kept: those issued, denied or failed, and those that still wait."""


class CertificateAuthority(msgspec.Struct, frozen=True):
    """`longest` is how long a certificate lasts for which no shorter time is asked."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    longest: timedelta = LONGEST

    @classmethod
    def of_pem(cls, certificate: bytes, key: bytes, longest: timedelta = LONGEST) -> CertificateAuthority:
        """Raises ValueError for what is no certificate, no key of RSA or an elliptic curve, or no pair."""
        loaded = serialization.load_pem_private_key(key, password=None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError("the key is neither of RSA nor of an elliptic curve")
        found = x509.load_pem_x509_certificate(certificate)
        if found.public_key() != loaded.public_key():
            raise ValueError("the key is not that of the certificate")
        return cls(found, loaded, longest)


def permissions(request: CertificateSigningRequest) -> list[str]:
    """The subresources of which one must be allowed to who asks, in order, for the request to be approved
    without an administrator; empty if only an administrator approves it. Raises ValueError."""
    spec = request.spec
    if spec.signer_name != KUBELET_CLIENT_SIGNER or fault(request):
        return []
    asks_for_itself = common_name(read_request(spec.request)) == spec.username
    return [SELF_NODE_CLIENT, NODE_CLIENT] if asks_for_itself else [NODE_CLIENT]


def is_to_sign(request: CertificateSigningRequest) -> bool:
    """Whether one of the signers here is to answer now, with a certificate or a refusal."""
    conditions = {one.type for one in request.status.conditions}
    waits = APPROVED in conditions and not {DENIED, FAILED} & conditions and not request.status.certificate
    return waits and request.spec.signer_name in SIGNERS


def fault(request: CertificateSigningRequest) -> str:
    """Why its signer refuses a request, in Kubernetes' words; empty if it signs. Raises ValueError."""
    signer, usages = request.spec.signer_name, request.spec.usages
    if signer == CLIENT_SIGNER:
        unknown = [one for one in usages if one not in (DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CLIENT_AUTH)]
        if unknown:
            return f"invalid usage for client certificate: {unknown[0]}"
        return (
            "" if CLIENT_AUTH in usages else f"missing required usage for client certificate: {CLIENT_AUTH}"
        )
    asked = read_request(request.spec.request)
    kinds = {type(name) for name in alternative_names(asked)}
    needed = {DIGITAL_SIGNATURE, SERVER_AUTH if signer == KUBELET_SERVING_SIGNER else CLIENT_AUTH}
    listed = " ".join(sorted({*needed, KEY_ENCIPHERMENT}))
    organization = (
        attributes_of(asked.subject, NameOID.ORGANIZATION_NAME) != [NODES],
        f"subject organization is not {NODES}",
    )
    usage = {*usages} - {KEY_ENCIPHERMENT} != needed, f"usages did not match [{listed}]"
    name = not common_name(asked).startswith(NODE), f"subject common name does not begin with {NODE}"
    dns, email, ip, uri = (
        (kind in kinds, f"{what} subjectAltNames are not allowed") for what, kind in SAN_KINDS.items()
    )
    anywhere = not (dns[0] or ip[0]), "DNS or IP subjectAltName is required"
    checks = {
        KUBELET_CLIENT_SIGNER: [organization, dns, email, ip, uri, name, usage],
        KUBELET_SERVING_SIGNER: [organization, anywhere, email, uri, usage, name],
    }[signer]
    return next((why for wrong, why in checks if wrong), "")


def common_name(request: x509.CertificateSigningRequest) -> str:
    """The last of several, as Go reads it."""
    return "".join(attributes_of(request.subject, NameOID.COMMON_NAME)[-1:])


def alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """Those that are issued. Raises ValueError."""
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name for kind in SAN_KINDS.values() for name in found if isinstance(name, kind)]


def issue(request: CertificateSigningRequest, authority: CertificateAuthority, now: datetime) -> bytes:
    """The certificate, in PEM, for a request without `fault`. Of what is asked for, only the public key, the
    subject and its alternative names are issued. Raises ValueError once the authority has expired."""
    asked, issuer = read_request(request.spec.request), authority.certificate
    if now >= issuer.not_valid_after_utc:
        raise ValueError(
            f"the signer has expired: NotAfter={issuer.not_valid_after_utc:%Y-%m-%d %H:%M:%S} +0000 UTC"
        )
    seconds, lifetime = request.spec.expiration_seconds, authority.longest
    if seconds is not None and timedelta(seconds=seconds) <= lifetime:
        lifetime = max(timedelta(seconds=seconds), SHORTEST)
    end = now + lifetime if lifetime < SHORT else now - BACKDATE + lifetime
    relative = []
    for kind in SUBJECT:
        values = asked.subject.get_attributes_for_oid(kind)[-1 if kind in SINGLE else 0 :]
        if values:
            relative.append(x509.RelativeDistinguishedName(values))
    subject = x509.Name(relative)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(asked.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(min(end, issuer.not_valid_after_utc))
    )
    for extension, critical in _extensions(request, asked, issuer, named=bool(relative)):
        builder = builder.add_extension(extension, critical)
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _extensions(
    request: CertificateSigningRequest,
    asked: x509.CertificateSigningRequest,
    issuer: x509.Certificate,
    *,
    named: bool,
) -> Iterator[tuple[x509.ExtensionType, bool]]:
    """Each with whether it is critical, in Go's order. `named`: whether the certificate has a subject."""
    usages = {*request.spec.usages}
    if usages & {DIGITAL_SIGNATURE, KEY_ENCIPHERMENT}:
        usage = x509.KeyUsage(
            digital_signature=DIGITAL_SIGNATURE in usages,
            key_encipherment=KEY_ENCIPHERMENT in usages,
            key_cert_sign=False,
            crl_sign=False,
            content_commitment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        yield usage, True
    yield x509.ExtendedKeyUsage([oid for name, oid in EXTENDED.items() if name in usages]), False
    yield x509.BasicConstraints(ca=False, path_length=None), True
    with suppress(x509.ExtensionNotFound):
        found = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        yield x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found), False
    if names := alternative_names(asked):
        yield x509.SubjectAlternativeName(names), not named


def is_over(request: CertificateSigningRequest, now: datetime) -> bool:
    """Whether a request is to be removed: nobody waits for it any more, or its certificate has expired."""
    status = request.status
    issued = bool(status.certificate)
    if not status.conditions:
        return now - parse_time(request.metadata.creation_timestamp) > PENDING_FOR
    kept = {APPROVED: DECIDED_FOR if issued else PENDING_FOR, DENIED: DECIDED_FOR, FAILED: DECIDED_FOR}
    for condition in status.conditions:
        since = parse_optional(condition.last_update_time or "")
        if condition.type in kept and since is not None and now - since > kept[condition.type]:
            return True
    return issued and bool(conditions_of(status, APPROVED)) and _has_expired(status.certificate, now)


def _has_expired(pem: bytes, now: datetime) -> bool:
    """Of several, the first certificate counts. What cannot be read has not expired."""
    try:
        return now > x509.load_der_x509_certificate(next(blocks(pem))[2]).not_valid_after_utc
    except (StopIteration, ValueError):
        return False
