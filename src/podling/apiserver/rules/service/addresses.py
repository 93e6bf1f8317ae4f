"""The cluster IPs and IP families of a service: what its type needs, which families it gets, and
validation.

The cluster has addresses of the families that the API server was started with, one or both. `PreferDualStack`
is content with one, and a headless service without selector, whose endpoints somebody else writes, may have
both in any cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from podling.apiserver.rules.addresses import parsed_loosely, unsuitable, validate_ip
from podling.apiserver.rules.field import (
    all_invalid,
    choice,
    duplicate,
    internal_error,
    invalid,
    not_supported,
    required,
)
from podling.model.errors import Cause
from podling.model.types.service import ServiceSpec

CLUSTER_IP, NODE_PORT, LOAD_BALANCER, EXTERNAL = "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"
TYPES = (CLUSTER_IP, EXTERNAL, LOAD_BALANCER, NODE_PORT)
HEADLESS = "None"
"""The cluster address of a service that has none."""
LOCAL = "Local"

IPV4, IPV6 = "IPv4", "IPv6"
FAMILIES = (IPV4, IPV6)
POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
ADDRESSES = "spec.clusterIPs"
SET_ONCE = "may not change once set"

SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"


def needs_cluster_ip(spec: ServiceSpec) -> bool:
    """Even to be headless is to need an address field."""
    return spec.type != EXTERNAL


def is_headless(spec: ServiceSpec) -> bool:
    return spec.cluster_ips == [HEADLESS]


def needs_node_ports(spec: ServiceSpec) -> bool:
    return spec.type in (NODE_PORT, LOAD_BALANCER)


def node_ports(spec: ServiceSpec) -> Iterator[int]:
    """Those that the service has."""
    yield from (port.node_port for port in spec.ports if port.node_port)
    if spec.health_check_node_port:
        yield spec.health_check_node_port


def wants_node_ports(spec: ServiceSpec) -> bool:
    """Whether each of its ports is given one; those that are asked for by number are had in any case."""
    return spec.type == NODE_PORT or (
        spec.type == LOAD_BALANCER and spec.allocate_load_balancer_node_ports is not False
    )


def is_reached_from_outside(spec: ServiceSpec) -> bool:
    return needs_node_ports(spec) or (spec.type == CLUSTER_IP and bool(spec.external_ips))


def needs_health_check(spec: ServiceSpec) -> bool:
    """By a load balancer, which must know the nodes that have a pod of the service."""
    return spec.type == LOAD_BALANCER and spec.external_traffic_policy == LOCAL


def validate_addresses(spec: ServiceSpec, standing: AbstractSet[str]) -> Iterator[Cause]:
    """`standing`: what the service had before, which need not be well-formed by today's rules."""
    if not needs_cluster_ip(spec):
        return
    # The older field names the first of the newer.
    if not spec.cluster_ip:
        if spec.cluster_ips:
            yield invalid(ADDRESSES, spec.cluster_ips, "must be empty when `clusterIP` is not specified")
    elif not spec.cluster_ips:
        yield required(ADDRESSES)
    elif spec.cluster_ips[0] != spec.cluster_ip:
        yield invalid(ADDRESSES, spec.cluster_ips, "first value must match `clusterIP`")
    seen: set[str] = set()
    for i, family in enumerate(spec.ip_families):
        if family not in FAMILIES:
            yield not_supported(f"spec.ipFamilies[{i}]", family, FAMILIES)
        if family in seen:
            yield duplicate(f"spec.ipFamilies[{i}]", family)
        seen.add(family)
    yield from choice("spec.ipFamilyPolicy", spec.ip_family_policy, POLICIES)
    faults: list[Cause] = []
    for i, address in enumerate(spec.cluster_ips):
        if i > 0 or address != HEADLESS:
            faults += validate_ip(address, f"{ADDRESSES}[{i}]", standing)
        elif len(spec.cluster_ips) > 1:
            faults.append(invalid(ADDRESSES, spec.cluster_ips, "'None' must be the first and only value"))
    yield from faults
    if len(spec.cluster_ips) > 2:
        yield invalid(ADDRESSES, spec.cluster_ips, "may only hold up to 2 values")
    if not faults:
        # Of addresses that are well-formed, or stood before: one that was headless may name that second.
        found = [] if is_headless(spec) else [_family(address) for address in spec.cluster_ips]
        if HEADLESS in spec.cluster_ips[1:]:
            at = spec.cluster_ips.index(HEADLESS)
            why = f"failed to check for dual stack with error:invalid IP[{at}]: {HEADLESS}"
            yield internal_error(ADDRESSES, why)
        if len(spec.cluster_ips) > 1 and (set(found) != set(FAMILIES) or HEADLESS in spec.cluster_ips):
            yield invalid(ADDRESSES, spec.cluster_ips, "may specify no more than one IP for each IP family")
        for i, (is_family, wanted) in enumerate(zip(found, spec.ip_families, strict=False)):
            if is_family != wanted and wanted in FAMILIES:
                why = f"expected an {wanted} value as indicated by `ipFamilies[{i}]`"
                yield invalid(f"{ADDRESSES}[{i}]", spec.cluster_ips[i], why)


def validate_external_addresses(spec: ServiceSpec, standing: AbstractSet[str]) -> Iterator[Cause]:
    for i, address in enumerate(spec.external_ips):
        where = f"spec.externalIPs[{i}]"
        faults = list(validate_ip(address, where, standing))
        yield from faults or all_invalid(where, address, unsuitable(address))


def validate_address_update(new: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    """The first address stays for life, unless it comes or goes with the type; the second may come and go."""
    if not (needs_cluster_ip(new) and needs_cluster_ip(old)):
        return
    if not (is_headless(new) and is_headless(old)):
        if len(new.cluster_ips) == len(old.cluster_ips):
            for i, (address, was) in enumerate(zip(new.cluster_ips, old.cluster_ips, strict=True)):
                if address != was:
                    yield invalid(f"{ADDRESSES}[{i}]", new.cluster_ips, SET_ONCE)
        elif old.cluster_ips and not new.cluster_ips:
            yield invalid(f"{ADDRESSES}[0]", new.cluster_ips, "primary clusterIP can not be unset")
        elif old.cluster_ips and new.cluster_ips[0] != old.cluster_ips[0]:
            yield invalid(f"{ADDRESSES}[0]", new.cluster_ips, SET_ONCE)
        if len(old.cluster_ips) > len(new.cluster_ips) == 1:
            yield from _validate_release(new, "clusterIP")
    if not (is_headless(new) or is_headless(old)):
        path, families, before = "spec.ipFamilies[0]", new.ip_families, old.ip_families
        if len(families) == len(before):
            changed = [family for family, was in zip(families, before, strict=True) if family != was]
            yield from (invalid(path, families, SET_ONCE) for _ in changed)
        elif families and before and families[0] != before[0]:
            yield invalid(path, new.cluster_ips, SET_ONCE)
        if len(before) > len(families) == 1:
            yield from _validate_release(new, "ipFamily")


def _family(address: str) -> str:
    meant = parsed_loosely(address)
    return IPV6 if meant is not None and meant.version == 6 else IPV4


def _validate_release(spec: ServiceSpec, what: str) -> Iterator[Cause]:
    if spec.ip_family_policy != "SingleStack":
        why = f"must be set to 'SingleStack' when releasing the secondary {what}"
        yield invalid("spec.ipFamilyPolicy", spec.ip_family_policy, why)


def settle_families(
    spec: ServiceSpec, old: ServiceSpec | None, configured: Sequence[str] = (IPV4,)
) -> list[Cause]:
    """Fill in `ipFamilies` and `ipFamilyPolicy` in a cluster of the families that are `configured`; what
    stands in the way is returned."""
    if not needs_cluster_ip(spec):
        return []
    # What a cluster could give a service that prefers both is not taken up again at every update.
    if old is not None and spec.ip_family_policy == PREFER and _asked(spec) == _asked(old):
        return []
    # Its endpoints somebody else writes, of whatever family.
    anybodys = spec.cluster_ip == HEADLESS and not spec.selector
    if spec.ip_family_policy is None:
        before = old.ip_family_policy if old is not None else None
        spec.ip_family_policy = before or (REQUIRE if anybodys else SINGLE)
    if faults := list(validate_addresses(spec, frozenset(old.cluster_ips if old else ()))):
        return faults
    faults = list(_settle_update(spec, old)) if old is not None else []
    if spec.ip_family_policy == SINGLE:
        for values, what in ((spec.cluster_ips, "cluster IPs"), (spec.ip_families, "IP families")):
            if len(values) == 2:
                why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                faults.append(invalid("spec.ipFamilyPolicy", SINGLE, why))
    faults += _infer_families(spec, configured)
    if faults:
        return faults
    if anybodys:
        _complete(spec, configured[0])
        return []
    if spec.ip_family_policy == REQUIRE and len(configured) == 1:
        why = "this cluster is not configured for dual-stack services"
        faults.append(invalid("spec.ipFamilyPolicy", REQUIRE, why))
    for i, family in enumerate(spec.ip_families):
        if family not in configured:
            faults.append(invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster"))
    if not faults and len(configured) == len(FAMILIES):
        _complete(spec, configured[0])
    elif not faults:
        spec.ip_families = spec.ip_families or list(configured)
    return faults


def _complete(spec: ServiceSpec, first: str) -> None:
    spec.ip_families = spec.ip_families or [first]
    if len(spec.ip_families) == 1 and spec.ip_family_policy != SINGLE:
        spec.ip_families = [*spec.ip_families, IPV6 if spec.ip_families[0] == IPV4 else IPV4]


def _asked(spec: ServiceSpec) -> tuple[object, ...]:
    return spec.type, spec.ip_family_policy, spec.cluster_ips, spec.ip_families


def _settle_update(spec: ServiceSpec, old: ServiceSpec) -> Iterator[Cause]:
    """To want a single family is to give up the second; to give it up takes saying so."""
    path, policy = "spec.ipFamilyPolicy", spec.ip_family_policy
    if policy == SINGLE:
        if spec.cluster_ips == old.cluster_ips:
            spec.cluster_ips = spec.cluster_ips[:1]
        if spec.ip_families == old.ip_families:
            spec.ip_families = spec.ip_families[:1]
        return
    if len(spec.cluster_ips) == 1 and len(old.cluster_ips) == 2:
        yield invalid(path, policy, "must be 'SingleStack' to release the secondary cluster IP")
    if len(spec.ip_families) == 1 and len(old.ip_families) == 2:
        yield invalid(path, policy, "must be 'SingleStack' to release the secondary IP family")


def _infer_families(spec: ServiceSpec, configured: Sequence[str]) -> Iterator[Cause]:
    """From the addresses that are asked for."""
    for i, address in enumerate(spec.cluster_ips):
        if address == HEADLESS or i < len(spec.ip_families):
            continue
        family = _family(address)
        if family in configured:
            spec.ip_families = [*spec.ip_families, family]
        else:
            why = f"{family} is not configured on this cluster"
            yield invalid(f"spec.clusterIPs[{i}]", spec.cluster_ips, why)
