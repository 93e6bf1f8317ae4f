"""The address families of a service: which it gets, and why it cannot have those it asks for.

The cluster has addresses of one family; `PreferDualStack` is content with that, and a headless service
without a selector, whose endpoints somebody else writes, may have both.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import invalid
from podling.apiserver.registry.ip_addresses import parsed_loosely
from podling.apiserver.registry.service.addresses import IPV4, IPV6, validate_addresses
from podling.apiserver.registry.service.needs import HEADLESS, needs_cluster_ip
from podling.model.errors import Cause
from podling.model.service import ServiceSpec

CONFIGURED = (IPV4,)
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"


def settle_families(spec: ServiceSpec, old: ServiceSpec | None) -> list[Cause]:
    """Fill in `ipFamilies` and `ipFamilyPolicy`; what stands in the way is returned."""
    if not needs_cluster_ip(spec) or (old is not None and _stays_as_preferred(spec, old)):
        return []
    spec.ip_family_policy = spec.ip_family_policy or _policy(spec, old)
    if faults := list(validate_addresses(spec, frozenset(old.cluster_ips if old else ()))):
        return faults
    faults = [*_settle_update(spec, old), *_fit_policy(spec), *_infer_families(spec)]
    if faults:
        return faults
    if _is_anybodys(spec):
        spec.ip_families = spec.ip_families or [CONFIGURED[0]]
        if len(spec.ip_families) == 1 and spec.ip_family_policy != SINGLE:
            spec.ip_families = [*spec.ip_families, IPV6 if spec.ip_families[0] == IPV4 else IPV4]
        return []
    if faults := list(_fit_cluster(spec)):
        return faults
    spec.ip_families = spec.ip_families or [CONFIGURED[0]]
    return []


def _is_anybodys(spec: ServiceSpec) -> bool:
    return spec.cluster_ip == HEADLESS and not spec.selector


def _policy(spec: ServiceSpec, old: ServiceSpec | None) -> str:
    if old is not None and old.ip_family_policy is not None:
        return old.ip_family_policy
    return REQUIRE if _is_anybodys(spec) else SINGLE


def _stays_as_preferred(spec: ServiceSpec, old: ServiceSpec) -> bool:
    """What a cluster could give a service that prefers both is not taken up again at every update."""
    asked, before = (
        (one.type, one.ip_family_policy, one.cluster_ips, one.ip_families) for one in (spec, old)
    )
    return spec.ip_family_policy == PREFER and asked == before


def _settle_update(spec: ServiceSpec, old: ServiceSpec | None) -> Iterator[Cause]:
    """To want a single family is to give up the second; to give it up takes saying so."""
    if old is None:
        return
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


def _fit_policy(spec: ServiceSpec) -> Iterator[Cause]:
    if spec.ip_family_policy != SINGLE:
        return
    for values, what in ((spec.cluster_ips, "cluster IPs"), (spec.ip_families, "IP families")):
        if len(values) == 2:
            why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            yield invalid("spec.ipFamilyPolicy", spec.ip_family_policy, why)


def _infer_families(spec: ServiceSpec) -> Iterator[Cause]:
    """From the addresses that are asked for."""
    for i, address in enumerate(spec.cluster_ips):
        if address == HEADLESS or i < len(spec.ip_families):
            continue
        meant = parsed_loosely(address)
        family = IPV6 if meant is not None and meant.version == 6 else IPV4
        if family in CONFIGURED:
            spec.ip_families = [*spec.ip_families, family]
        else:
            why = f"{family} is not configured on this cluster"
            yield invalid(f"spec.clusterIPs[{i}]", spec.cluster_ips, why)


def _fit_cluster(spec: ServiceSpec) -> Iterator[Cause]:
    if spec.ip_family_policy == REQUIRE:
        why = "this cluster is not configured for dual-stack services"
        yield invalid("spec.ipFamilyPolicy", spec.ip_family_policy, why)
    for i, family in enumerate(spec.ip_families):
        if family not in CONFIGURED:
            yield invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
