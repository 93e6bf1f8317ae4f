"""Validation of CertificateSigningRequests: the PEM that is sent and issued, and who may decide what."""

from __future__ import annotations

from collections.abc import Iterator

from cryptography import x509

from podling.apiserver.rules.certificate_requests import request_fault
from podling.apiserver.rules.field import duplicate, forbidden, invalid, not_supported, required
from podling.apiserver.rules.volume.projected import validate_signer
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.rules.certificates import (
    APPROVED,
    DENIED,
    FAILED,
    attributes_of,
    blocks,
    conditions_of,
    read_request,
)
from podling.model.types.certificates import (
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
)

SHORTEST = 600
LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
USAGES = ENUMS["CertificateSigningRequestSpec", "usages"]
STATUSES = ("False", "True", "Unknown")


def validate_request(spec: CertificateSigningRequestSpec) -> Iterator[Cause]:
    if why := request_fault(spec.request):
        yield invalid("spec.request", spec.request or None, why)
    if not spec.usages:
        yield required("spec.usages")
    for i, usage in enumerate(spec.usages):
        if usage not in USAGES:
            yield not_supported(f"spec.usages[{i}]", usage, USAGES)
    seen: set[str] = set()
    for i, usage in enumerate(spec.usages):
        if usage in seen:
            yield duplicate(f"spec.usages[{i}]", usage)
        seen.add(usage)
    if spec.signer_name == LEGACY_SIGNER:
        why = "the legacy signerName is not allowed via this API version"
        yield invalid("spec.signerName", spec.signer_name, why)
    else:
        yield from validate_signer(spec.signer_name, "spec.signerName")
    if spec.expiration_seconds is not None and spec.expiration_seconds < SHORTEST:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", spec.expiration_seconds, why)


def subject_groups(pem: bytes) -> list[str]:
    """The organizations of a valid request's subject: the groups that its certificate would give."""
    return attributes_of(read_request(pem).subject, x509.NameOID.ORGANIZATION_NAME)


def validate_status(
    new: CertificateSigningRequestStatus, old: CertificateSigningRequestStatus
) -> Iterator[Cause]:
    yield from _validate_conditions(new.conditions)
    if (
        new.certificate
        and new.certificate != old.certificate
        and (why := _certificate_fault(new.certificate))
    ):
        yield invalid("status.certificate", "<certificate data>", why)


def _certificate_fault(pem: bytes) -> str:
    found = False
    for kind, headers, content in blocks(pem):
        found = True
        if kind != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{kind}"'
        if headers:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(content)
        except ValueError as error:
            return str(error)
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def ca_bundle_fault(pem: bytes) -> str:
    """What keeps a bundle of certificate authorities from being loaded, in Kubernetes' words: what follows
    the first certificate is not looked at."""
    kind = ""
    for kind, headers, content in blocks(pem):
        if kind == "CERTIFICATE" and not headers:
            try:
                x509.load_der_x509_certificate(content)
            except ValueError:
                return "failed to parse certificate: x509: malformed certificate"
            return ""
    return "no valid certificate authority data seen" if kind else "unable to parse bytes as PEM block"


def _validate_conditions(conditions: list[CertificateSigningRequestCondition]) -> Iterator[Cause]:
    found: set[str] = set()
    for i, condition in enumerate(conditions):
        path = f"status.conditions[{i}]"
        if not condition.type:
            yield required(f"{path}.type")
        if not condition.status:
            yield required(f"{path}.status")
        elif condition.type in (APPROVED, DENIED, FAILED):
            if condition.status != "True":
                yield not_supported(f"{path}.status", condition.status, ("True",))
        elif condition.status not in STATUSES:
            yield not_supported(f"{path}.status", condition.status, STATUSES)
        if {condition.type, *found} >= {APPROVED, DENIED} and condition.type in (APPROVED, DENIED):
            why = "Approved and Denied conditions are mutually exclusive"
            yield invalid("status.conditions", condition.type, why)
        if condition.type in found:
            yield duplicate(f"{path}.type", condition.type)
        found.add(condition.type)


def validate_change(
    new: CertificateSigningRequestStatus, old: CertificateSigningRequestStatus, *, may_decide: bool = True
) -> Iterator[Cause]:
    """What was decided or issued stays, and who may not decide adds no decision."""
    path = "status.conditions"
    for type_ in (APPROVED, DENIED, FAILED):
        if len(conditions_of(new, type_)) < len(conditions_of(old, type_)):
            yield forbidden(path, f'updates may not remove a condition of type "{type_}"')
    if not may_decide:
        for type_ in (APPROVED, DENIED):
            if len(conditions_of(new, type_)) > len(conditions_of(old, type_)):
                yield forbidden(path, f'updates may not add a condition of type "{type_}"')
    if old.certificate and new.certificate != old.certificate:
        yield forbidden("status.certificate", "updates may not modify existing certificate content")
