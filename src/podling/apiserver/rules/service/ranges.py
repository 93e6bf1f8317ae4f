"""Validation of the ranges of cluster IPs, and of what an address in use belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules.addresses import cidr_faults_exact
from podling.apiserver.rules.field import IMMUTABLE, all_invalid, invalid, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.networking import ParentReference, ServiceCIDRSpec

MOST_RANGES = 2
ONE_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def validate_ranges(spec: ServiceCIDRSpec, path: str) -> Iterator[Cause]:
    path = f"{path}.cidrs"
    if not spec.cidrs:
        yield required(path, "at least one CIDR required")
    elif len(spec.cidrs) > MOST_RANGES:
        yield invalid(path, {"CIDRs": spec.cidrs}, f"may only hold up to {MOST_RANGES} values")
    else:
        faults = [
            fault
            for i, cidr in enumerate(spec.cidrs)
            for fault in all_invalid(f"{path}[{i}]", cidr, cidr_faults_exact(cidr))
        ]
        yield from faults
        if not faults and len({":" in cidr for cidr in spec.cidrs}) < len(spec.cidrs):
            yield invalid(path, spec.cidrs, ONE_EACH)


def validate_ranges_update(new: ServiceCIDRSpec, old: ServiceCIDRSpec, path: str) -> Iterator[Cause]:
    """A range stays for life; one of the other family may be added to it."""
    becomes_dual = (len(old.cidrs), len(new.cidrs)) == (1, MOST_RANGES)
    if not becomes_dual and len(old.cidrs) != len(new.cidrs):
        yield invalid(f"{path}.cidrs", new.cidrs, IMMUTABLE)
        return
    for i, (cidr, was) in enumerate(zip(new.cidrs, old.cidrs, strict=False)):
        if cidr != was:
            yield invalid(f"{path}.cidrs[{i}]", cidr, IMMUTABLE)
    if becomes_dual:
        yield from validate_ranges(new, path)


def validate_parent(parent: ParentReference | None, path: str) -> Iterator[Cause]:
    if parent is None:
        yield required(path)
        return
    if parent.group:
        yield from all_invalid(f"{path}.group", parent.group, names.dns1123_subdomain(parent.group))
    for wire, value in (("resource", parent.resource), ("name", parent.name)):
        if not value:
            yield required(f"{path}.{wire}")
        else:
            yield from all_invalid(f"{path}.{wire}", value, names.path_segment(value))
    if parent.namespace:
        yield from all_invalid(f"{path}.namespace", parent.namespace, names.path_segment(parent.namespace))
