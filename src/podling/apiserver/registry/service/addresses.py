"""Faults of a service's cluster addresses and their families, and of how an update changes them."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from podling.apiserver.registry.field import choice, duplicate, invalid, not_supported, required
from podling.apiserver.registry.ip_addresses import parsed_loosely, unsuitable, validate_ip
from podling.apiserver.registry.service.needs import HEADLESS, is_headless, needs_cluster_ip
from podling.model.errors import Cause
from podling.model.service import ServiceSpec

IPV4, IPV6 = "IPv4", "IPv6"
FAMILIES = (IPV4, IPV6)
POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
ADDRESSES = "spec.clusterIPs"
SET_ONCE = "may not change once set"


def validate_addresses(spec: ServiceSpec, standing: AbstractSet[str]) -> Iterator[Cause]:
    """`standing`: what the service had before, which need not be well-formed by today's rules."""
    if not needs_cluster_ip(spec):
        return
    yield from _validate_first(spec)
    seen: set[str] = set()
    for i, family in enumerate(spec.ip_families):
        if family not in FAMILIES:
            yield not_supported(f"spec.ipFamilies[{i}]", family, FAMILIES)
        if family in seen:
            yield duplicate(f"spec.ipFamilies[{i}]", family)
        seen.add(family)
    yield from choice("spec.ipFamilyPolicy", spec.ip_family_policy, POLICIES)
    faults = list(_validate_each(spec, standing))
    yield from faults
    if len(spec.cluster_ips) > 2:
        yield invalid(ADDRESSES, spec.cluster_ips, "may only hold up to 2 values")
    if not faults:
        yield from _validate_families(spec)


def validate_external_addresses(spec: ServiceSpec, standing: AbstractSet[str]) -> Iterator[Cause]:
    for i, address in enumerate(spec.external_ips):
        where = f"spec.externalIPs[{i}]"
        if faults := list(validate_ip(address, where, standing)):
            yield from faults
        elif (meant := parsed_loosely(address)) is not None:
            yield from (invalid(where, address, why) for why in unsuitable(meant))


def validate_address_update(new: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    """The first address stays for life, unless it comes or goes with the type; the second may come and go."""
    if not (needs_cluster_ip(new) and needs_cluster_ip(old)):
        return
    if not (is_headless(new) and is_headless(old)):
        yield from _validate_same(new.cluster_ips, old.cluster_ips, new)
    if not (is_headless(new) or is_headless(old)):
        yield from _validate_same_families(new, old)


def _validate_first(spec: ServiceSpec) -> Iterator[Cause]:
    """The older field names the first of the newer."""
    if not spec.cluster_ip:
        if spec.cluster_ips:
            yield invalid(ADDRESSES, spec.cluster_ips, "must be empty when `clusterIP` is not specified")
    elif not spec.cluster_ips:
        yield required(ADDRESSES)
    elif spec.cluster_ips[0] != spec.cluster_ip:
        yield invalid(ADDRESSES, spec.cluster_ips, "first value must match `clusterIP`")


def _validate_each(spec: ServiceSpec, standing: AbstractSet[str]) -> Iterator[Cause]:
    for i, address in enumerate(spec.cluster_ips):
        if i == 0 and address == HEADLESS:
            if len(spec.cluster_ips) > 1:
                yield invalid(ADDRESSES, spec.cluster_ips, "'None' must be the first and only value")
        else:
            yield from validate_ip(address, f"{ADDRESSES}[{i}]", standing)


def _validate_families(spec: ServiceSpec) -> Iterator[Cause]:
    """Of addresses that are well-formed."""
    found = [_family(address) for address in spec.cluster_ips if address != HEADLESS]
    if len(spec.cluster_ips) > 1 and sorted(found) != sorted(FAMILIES):
        yield invalid(ADDRESSES, spec.cluster_ips, "may specify no more than one IP for each IP family")
    for i, (is_family, wanted) in enumerate(zip(found, spec.ip_families, strict=False)):
        if is_family != wanted:
            why = f"expected an {wanted} value as indicated by `ipFamilies[{i}]`"
            yield invalid(f"{ADDRESSES}[{i}]", spec.cluster_ips[i], why)


def _family(address: str) -> str:
    meant = parsed_loosely(address)
    return IPV6 if meant is not None and meant.version == 6 else IPV4


def _validate_same(new: list[str], old: list[str], spec: ServiceSpec) -> Iterator[Cause]:
    if len(new) == len(old):
        for i, (address, before) in enumerate(zip(new, old, strict=True)):
            if address != before:
                yield invalid(f"{ADDRESSES}[{i}]", new, SET_ONCE)
    elif old and not new:
        yield invalid(f"{ADDRESSES}[0]", new, "primary clusterIP can not be unset")
    elif old and new[0] != old[0]:
        yield invalid(f"{ADDRESSES}[0]", new, SET_ONCE)
    if len(old) > len(new) == 1:
        yield from _validate_release(spec, "clusterIP")


def _validate_same_families(new: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    path, families, before = "spec.ipFamilies[0]", new.ip_families, old.ip_families
    if len(families) == len(before):
        changed = [family for family, was in zip(families, before, strict=True) if family != was]
        yield from (invalid(path, families, SET_ONCE) for _ in changed)
    elif families and before and families[0] != before[0]:
        yield invalid(path, new.cluster_ips, SET_ONCE)
    if len(before) > len(families) == 1:
        yield from _validate_release(new, "ipFamily")


def _validate_release(spec: ServiceSpec, what: str) -> Iterator[Cause]:
    if spec.ip_family_policy != "SingleStack":
        why = f"must be set to 'SingleStack' when releasing the secondary {what}"
        yield invalid("spec.ipFamilyPolicy", spec.ip_family_policy, why)
