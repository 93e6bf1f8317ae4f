"""Faults of what a container or pod requests of each resource, and of its limits."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import all_invalid, invalid, not_found, required
from podling.model import names
from podling.model.container import ResourceRequirements
from podling.model.errors import Cause
from podling.model.quantity import Quantity

NATIVE = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
HUGE_PAGES = "hugepages-"
_ONE = 10**9


def validate_resources(resources: ResourceRequirements, path: str, claims: frozenset[str]) -> Iterator[Cause]:
    for name, limit in resources.limits.items():
        yield from _validate_resource(name, limit, f"{path}.limits[{name}]", f"{path}.limits")
    for name, request in resources.requests.items():
        yield from _validate_resource(name, request, f"{path}.requests[{name}]", f"{path}.requests")
        yield from _validate_request(name, request, resources.limits.get(name), path)
    for i, claim in enumerate(resources.claims):
        if not claim.name:
            yield required(f"{path}.claims[{i}]")
        elif claim.name not in claims:
            yield not_found(f"{path}.claims[{i}]", claim.name)
    if not {"cpu", "memory"} & (resources.limits.keys() | resources.requests.keys()):
        for kind, listed in (("limits", resources.limits), ("requests", resources.requests)):
            if any(name.startswith(HUGE_PAGES) for name in listed):
                yield Cause(
                    "FieldValueForbidden", "Forbidden: HugePages require cpu or memory", f"{path}.{kind}"
                )


def validate_quantities(quantities: dict[str, Quantity], path: str) -> Iterator[Cause]:
    for name, quantity in quantities.items():
        yield from _validate_resource(name, quantity, f"{path}[{name}]", path)


def _validate_resource(name: str, quantity: Quantity, path: str, listed: str) -> Iterator[Cause]:
    yield from all_invalid(listed, name, names.qualified_name(name))
    if "/" not in name and name not in NATIVE and not name.startswith(HUGE_PAGES):
        yield invalid(listed, name, "must be a standard resource type or fully qualified")
        yield invalid(listed, name, "must be a standard resource for containers")
    if quantity.nanos < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")
    elif _is_countable(name) and quantity.nanos % _ONE:
        yield invalid(path, quantity, "must be an integer")


def _is_countable(name: str) -> bool:
    """Resources of which there are no parts: all but those podling itself divides."""
    return name not in NATIVE and not name.startswith(HUGE_PAGES)


def _validate_request(name: str, request: Quantity, limit: Quantity | None, path: str) -> Iterator[Cause]:
    whole = _is_countable(name) or name.startswith(HUGE_PAGES)
    if limit is None:
        if whole:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    elif whole and request != limit:
        yield invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
    elif request > limit:
        yield invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")
