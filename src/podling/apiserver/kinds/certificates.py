"""CertificateSigningRequests: somebody asks for a certificate, somebody approves, and a signer issues it.

Each writes through a path of its own: who asks creates the object, who approves writes the conditions
Approved and Denied through `approval`, and the signer writes the rest of the status through `status`. Who
asks is for admission to say, which knows the user, and so is the time of a condition.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, age, or_none
from podling.apiserver.kinds.kind import Column, Kind, Part
from podling.apiserver.rules import metadata
from podling.apiserver.rules.certificates import validate_change, validate_request, validate_status
from podling.model.errors import Cause
from podling.model.rules.certificates import APPROVED, CLIENT_SIGNER, DENIED, FAILED, conditions_of
from podling.model.scheme import resource_of
from podling.model.time import human_duration
from podling.model.types.certificates import CertificateSigningRequest, CertificateSigningRequestStatus

NO_RBAC = "podling has no RBAC yet: whoever gets this certificate may do anything"


class _Approval(Part[CertificateSigningRequest]):
    name = "approval"
    has_tables = False
    unwritten = {"f:spec": {}, "f:status": {"f:certificate": {}}}

    def prepare_update(self, new: CertificateSigningRequest, old: CertificateSigningRequest) -> None:
        new.spec, new.status.certificate = old.spec, old.status.certificate

    def validate_update(self, new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[Cause]:
        return [*_validate_update(new, old), *validate_change(new.status, old.status)]


class _Status(Part[CertificateSigningRequest]):
    name = "status"
    unwritten = {"f:status": {"f:conditions": {}}}

    def prepare_update(self, new: CertificateSigningRequest, old: CertificateSigningRequest) -> None:
        new.spec = old.spec
        # A signer that read the object before it was approved may write other times for the same decision.
        for decision in (APPROVED, DENIED):
            standing, found = conditions_of(old.status, decision), conditions_of(new.status, decision)
            if len(standing) == len(found):
                kept = iter(standing)
                new.status.conditions = [
                    next(kept) if one.type == decision else one for one in new.status.conditions
                ]

    def validate_update(self, new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[Cause]:
        return [*_validate_update(new, old), *validate_change(new.status, old.status, may_decide=False)]


def _validate_update(new: CertificateSigningRequest, old: CertificateSigningRequest) -> list[Cause]:
    return [
        *metadata.validate_written(new.metadata),
        *validate_request(new.spec),
        *validate_status(new.status, old.status),
        *metadata.validate_update(new.metadata, old.metadata),
    ]


class CertificateSigningRequests(Kind[CertificateSigningRequest]):
    resource = resource_of(CertificateSigningRequest)
    judges_prefix_again = False
    unwritten = {"f:spec": {}}
    subresources = {"approval": _Approval(), "status": _Status()}
    selectable_fields = {"spec.signerName": lambda request: request.spec.signer_name}
    columns = (
        NAME,
        AGE,
        Column("SignerName", description="Who is asked to sign."),
        Column("Requestor", description="Who asks."),
        Column("RequestedDuration", description="How long the certificate shall be good."),
        Column("Condition", description="What was decided, and whether a certificate was issued."),
    )

    def prepare_create(self, obj: CertificateSigningRequest, now: datetime) -> None:
        obj.status = CertificateSigningRequestStatus()

    def prepare_update(self, new: CertificateSigningRequest, old: CertificateSigningRequest) -> None:
        new.spec, new.status = old.spec, old.status

    def validate(self, obj: CertificateSigningRequest) -> list[Cause]:
        causes = metadata.validate(
            obj.metadata, namespaced=False, name_rule=lambda name: [], prefix="unjudged"
        )
        return [*causes, *validate_request(obj.spec)]

    def warnings(self, obj: CertificateSigningRequest) -> list[str]:
        return [NO_RBAC] if obj.spec.signer_name == CLIENT_SIGNER else []

    def row(self, obj: CertificateSigningRequest, now: datetime) -> list[Any]:
        seconds, types = obj.spec.expiration_seconds, {one.type for one in obj.status.conditions}
        state = DENIED if DENIED in types else APPROVED if APPROVED in types else "Pending"
        if FAILED in types:
            state += f",{FAILED}"
        if obj.status.certificate:
            state += ",Issued"
        return [
            obj.metadata.name,
            age(obj.metadata.creation_timestamp, now),
            or_none(obj.spec.signer_name),
            obj.spec.username,
            or_none("" if seconds is None else human_duration(seconds)),
            state,
        ]
