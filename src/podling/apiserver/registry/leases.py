"""Leases: who leads, and that a node is alive."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.field import all_invalid, at_least, forbidden, not_supported
from podling.apiserver.registry.kind import Column, Kind
from podling.model import names
from podling.model.errors import Cause
from podling.model.lease import Lease, LeaseSpec
from podling.model.scheme import resource_of

STRATEGIES = ("OldestEmulationVersion",)


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
    if spec.strategy is not None:
        causes += _validate_strategy(spec.strategy)
    if spec.preferred_holder and not spec.strategy:
        causes.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return causes


def _validate_strategy(strategy: str) -> list[Cause]:
    """Kubernetes' own, or one whose domain says whose it is. (The path is as Kubernetes shows it.)"""
    path = "spec.strategy.strategy"
    if "/" in strategy:
        return all_invalid(path, strategy, names.qualified_name(strategy))
    return [] if strategy in STRATEGIES else [not_supported(path, strategy, STRATEGIES)]
