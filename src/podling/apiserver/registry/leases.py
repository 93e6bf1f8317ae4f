"""Leases: who leads, and that a node is alive."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.field import at_least, forbidden, invalid
from podling.apiserver.registry.kind import Column, Kind
from podling.model.errors import Cause
from podling.model.lease import Lease, LeaseSpec
from podling.model.scheme import resource_of


class Leases(Kind[Lease]):
    resource = resource_of(Lease)
    creates_on_update = True
    updates_unconditionally = False
    columns = (NAME, Column("Holder", description="Who holds the lease."), AGE)

    def validate(self, obj: Lease) -> list[Cause]:
        return [*metadata.validate(obj.metadata), *_validate_spec(obj.spec)]

    def validate_update(self, new: Lease, old: Lease) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: Lease, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.spec.holder_identity or "", age(obj.metadata.creation_timestamp, now)]


def _validate_spec(spec: LeaseSpec) -> list[Cause]:
    causes: list[Cause] = []
    if spec.lease_duration_seconds is not None:
        causes += at_least("spec.leaseDurationSeconds", spec.lease_duration_seconds, 1)
    if spec.lease_transitions is not None:
        causes += at_least("spec.leaseTransitions", spec.lease_transitions, 0)
    if spec.holder_identity == "":
        causes.append(invalid("spec.holderIdentity", "", "must not be empty"))
    if spec.preferred_holder and not spec.strategy:
        causes.append(forbidden("spec.preferredHolder", "can only be specified if strategy is defined"))
    return causes
