"""ServiceCIDRs, the ranges that services get their cluster IPs from, and IPAddresses, the addresses in use.

An IPAddress is named by its address, so none is in use twice. Those of services are made and removed with
their services (`store`); a ServiceCIDR is put to use, and held while addresses of it are in use, by a
controller.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Controlled, Kind, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import ip_faults_exact
from podling.apiserver.rules.field import IMMUTABLE, internal, invalid
from podling.apiserver.rules.service.ranges import validate_parent, validate_ranges, validate_ranges_update
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.networking import IPAddress, ServiceCIDR


class ServiceCIDRs(Controlled[ServiceCIDR]):
    resource = resource_of(ServiceCIDR)
    judges_prefix_again = False
    has_generation = False
    subresources = {"status": Status(keeps_metadata=True)}
    columns = (NAME, Column("CIDRs", description="The range, of each family at most one."), AGE)

    def validate(self, obj: ServiceCIDR) -> list[Cause]:
        return [*metadata.validate(obj.metadata, namespaced=False), *validate_ranges(obj.spec, "spec")]

    def validate_changed(self, new: ServiceCIDR, old: ServiceCIDR) -> list[Cause]:
        return metadata.validate(new.metadata, namespaced=False)

    def validate_update(self, new: ServiceCIDR, old: ServiceCIDR) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *validate_ranges_update(new.spec, old.spec, "spec"),
        ]

    def row(self, obj: ServiceCIDR, now: datetime) -> list[Any]:
        meta = obj.metadata
        return [meta.name, ",".join(obj.spec.cidrs), age(meta.creation_timestamp, now)]


class IPAddresses(Kind[IPAddress]):
    resource = resource_of(IPAddress)
    extends_names = False
    columns = (NAME, Column("ParentRef", description="The object whose address it is."))

    def validate(self, obj: IPAddress) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False, name_rule=ip_faults_exact, prefix="whole"),
            *validate_parent(obj.spec.parent_ref, "spec.parentRef"),
        ]

    def validate_update(self, new: IPAddress, old: IPAddress) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.spec.parent_ref != old.spec.parent_ref:
            causes.append(invalid("spec.parentRef", internal(new.spec.parent_ref), IMMUTABLE))
        return causes

    def row(self, obj: IPAddress, now: datetime) -> list[Any]:
        meta, parent = obj.metadata, obj.spec.parent_ref
        resource = ".".join(filter(None, (parent.resource, parent.group))) if parent else ""
        parts = (resource, parent.namespace, parent.name) if parent else ()
        # There is no column for the age, but it is written, as by Kubernetes.
        return [meta.name, "/".join(filter(None, parts)), age(meta.creation_timestamp, now)]
