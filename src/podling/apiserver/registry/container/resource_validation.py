"""Faults of what a container or pod requests of each resource, and of its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podling.apiserver.registry.field import all_invalid, forbidden, invalid, not_supported, required
from podling.apiserver.registry.pod.resource_claims import validate_claims
from podling.model import names
from podling.model.container import ResourceRequirements
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.resources import is_supported_at_pod_level

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

HUGE_PAGES = "hugepages-"
_ONE = 10**9

NameRule = Callable[[str, str], Iterator[Cause]]


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
        yield from _validate_request(name, request, limits.get(name), path)
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
    return not is_native(name) and not name.startswith("requests.")


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
    if name.startswith(HUGE_PAGES) and not _is_multiple(quantity, name.removeprefix(HUGE_PAGES)):
        yield invalid(path, quantity, f"{quantity} is not positive integer multiple of {name}")


def _is_multiple(quantity: Quantity, page: str) -> bool:
    try:
        size = Quantity(page)
    except ValueError:
        return False
    return size.nanos > 0 and size.nanos % _ONE == 0 and quantity.value() % size.value() == 0


def _validate_request(name: str, request: Quantity, limit: Quantity | None, path: str) -> Iterator[Cause]:
    if limit is None:
        if not overcommits(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    elif request != limit and not overcommits(name):
        yield invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
    elif request > limit:
        yield invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")
