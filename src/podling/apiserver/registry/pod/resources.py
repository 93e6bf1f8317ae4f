"""Faults of the resources of a pod as a whole, beside those of its containers."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.container.resource_validation import HUGE_PAGES, validate_pod_level
from podling.apiserver.registry.field import forbidden, invalid
from podling.model.container import ResourceRequirements
from podling.model.errors import Cause
from podling.model.pod import PodSpec
from podling.model.resources import container_limits, container_requests


def validate_pod_resources(spec: PodSpec, path: str, claims: frozenset[str]) -> Iterator[Cause]:
    if spec.resources is None:
        return
    if spec.os is not None and spec.os.name == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if spec.resources.claims:
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from validate_pod_level(spec.resources, path, claims)
    yield from _validate_aggregates(spec, spec.resources, path)
    for i, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            most = spec.resources.limits.get(name)
            if most is not None and limit > most:
                why = f"must be less than or equal to pod limits of {most}"
                yield invalid(f"{path}.containers[{i}][{name}].limits", limit, why)


def _validate_aggregates(spec: PodSpec, whole: ResourceRequirements, path: str) -> Iterator[Cause]:
    """What the containers request together must fit; of huge pages also what they are limited to."""
    for name, together in container_requests(spec).items():
        amount = whole.requests.get(name)
        if amount is not None and together > amount:
            why = f"must be greater than or equal to aggregate container requests of {together}"
            yield invalid(f"{path}.requests[{name}]", amount, why)
    for name, together in container_limits(spec).items():
        amount = whole.limits.get(name)
        if name.startswith(HUGE_PAGES) and amount is not None and together > amount:
            why = f"must be greater than or equal to aggregate container limits of {together}"
            yield invalid(f"{path}.limits[{name}]", amount, why)
