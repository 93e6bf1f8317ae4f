"""Validation of requests and limits of containers and pods, and of resource claims and their use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podling.apiserver.rules.field import (
    all_invalid,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_found,
    not_supported,
    required,
)
from podling.model import names
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.rules.resources import HUGE_PAGES, is_supported_at_pod_level
from podling.model.types.container import ResourceClaim, ResourceRequirements
from podling.model.types.pod import PodResourceClaim

CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
COUNTS = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
STANDARD = (
    CONTAINER_RESOURCES
    | COUNTS
    | {f"{kind}.{name}" for kind in ("requests", "limits") for name in CONTAINER_RESOURCES}
    | {"storage", "requests.storage"}
)
"""Names without a domain that mean something somewhere; few of them mean something to a container."""

_ONE = 10**9

NameRule = Callable[[str, str], Iterator[Cause]]


def validate_claims(used: list[ResourceClaim], path: str, claims: frozenset[str]) -> Iterator[Cause]:
    """A claim is used whole or request by request, not both."""
    seen: set[str] = set()
    for i, claim in enumerate(used):
        where = f"{path}[{i}]"
        if not claim.name:
            yield required(where)
            continue
        if claim.name in seen:
            yield duplicate(where, claim.name)
        else:
            key = claim.name
            if claim.request:
                yield from all_invalid(f"{where}.request", claim.request, names.dns1123_label(claim.request))
                key = f"{claim.name}/{claim.request}"
            if key in seen:
                yield duplicate(where, key)
            elif not claim.request:
                yield from (duplicate(where, key) for one in sorted(seen) if one.startswith(f"{claim.name}/"))
            seen.add(key)
        if claim.name not in claims:
            listed = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            yield not_found(where, claim.name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def validate_pod_claims(claims: list[PodResourceClaim], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        where = f"{path}[{i}]"
        if not claim.name:
            yield required(f"{where}.name")
        elif claim.name in seen:
            yield duplicate(f"{where}.name", claim.name)
        else:
            yield from all_invalid(f"{where}.name", claim.name, names.dns1123_label(claim.name))
        seen.add(claim.name)
        name, template = claim.resource_claim_name, claim.resource_claim_template_name
        if name is not None and template is not None:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(where, internal(claim), why)
        if name is None and template is None:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(where, internal(claim), why)
        for wire, value in (("resourceClaimName", name), ("resourceClaimTemplateName", template)):
            if value is not None:
                yield from all_invalid(f"{where}.{wire}", value, names.dns1123_subdomain(value))


def validate_resources(
    resources: ResourceRequirements, path: str, claims: frozenset[str] = frozenset()
) -> Iterator[Cause]:
    """Of a container. `claims`: the names of the pod's resourceClaims."""
    return _validate(resources, path, claims, validate_name)


def validate_pod_level(resources: ResourceRequirements, path: str, claims: frozenset[str]) -> Iterator[Cause]:
    """Of a pod as a whole."""
    return _validate(resources, path, claims, _validate_pod_level_name)


def _validate(
    resources: ResourceRequirements, path: str, claims: frozenset[str], name_rule: NameRule
) -> Iterator[Cause]:
    limits, requests = resources.limits, resources.requests
    for name, limit in limits.items():
        where = f"{path}.limits[{name}]"
        yield from name_rule(name, where)
        yield from _validate_quantity(name, limit, where)
    for name, request in requests.items():
        where = f"{path}.requests[{name}]"
        yield from name_rule(name, where)
        yield from _validate_quantity(name, request, where)
        most = limits.get(name)
        if most is None:
            if not overcommits(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif request != most and not overcommits(name):
            yield invalid(f"{path}.requests", request, f"must be equal to {name} limit of {most}")
        elif request > most:
            yield invalid(
                f"{path}.requests",
                request,
                f"must be less than or equal to {name} limit of {most}",
            )
    if not {"cpu", "memory"} & (limits.keys() | requests.keys()) and any(
        name.startswith(HUGE_PAGES) for listed in (limits, requests) for name in listed
    ):
        yield forbidden(path, "HugePages require cpu or memory")
    if resources.claims:
        yield from validate_claims(resources.claims, f"{path}.claims", claims)


def validate_name(name: str, path: str) -> Iterator[Cause]:
    if name in CONTAINER_RESOURCES:
        return
    faults = names.qualified_name(name)
    yield from all_invalid(path, name, faults)
    if "/" not in name:
        huge = name.startswith(HUGE_PAGES)
        if not faults and not is_standard(name):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        if not huge:
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def validate_standard(name: str, path: str) -> Iterator[Cause]:
    """Of a resource of no container."""
    faults = names.qualified_name(name)
    yield from all_invalid(path, name, faults)
    if not faults and "/" not in name and not is_standard(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def _validate_pod_level_name(name: str, path: str) -> Iterator[Cause]:
    if is_supported_at_pod_level(name):
        return
    faults = names.qualified_name(name)
    yield from all_invalid(path, name, faults)
    if not faults:
        if "/" not in name and not is_standard(name):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        else:
            yield not_supported(path, name, ("cpu", HUGE_PAGES, "memory"))


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    # A quota for it has this name.
    return not names.qualified_name(f"requests.{name}")


def is_standard(name: str) -> bool:
    """Of a name without a domain: whether it means something somewhere."""
    return name in STANDARD or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))


def overcommits(name: str) -> bool:
    """Whether a limit may be more than what is requested."""
    return is_native(name) and not name.startswith(HUGE_PAGES)


def validate_quantity(name: str, quantity: Quantity, path: str) -> Iterator[Cause]:
    """Of any resource, whoever has it."""
    if quantity.nanos < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")
    if quantity.nanos % _ONE and (name in COUNTS or is_extended(name)):
        yield invalid(path, quantity, "must be an integer")


def _validate_quantity(name: str, quantity: Quantity, path: str) -> Iterator[Cause]:
    yield from validate_quantity(name, quantity, path)
    if not name.startswith(HUGE_PAGES):
        return
    try:
        page = Quantity(name.removeprefix(HUGE_PAGES))
    except ValueError:
        page = Quantity()
    if page.nanos <= 0 or page.nanos % _ONE or quantity.value() % page.value():
        yield invalid(path, quantity, f"{quantity} is not positive integer multiple of {name}")
