"""Faults of what the downward API is asked for: a field of the pod, or an amount of a resource."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import all_invalid, invalid, not_supported, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.references import ObjectFieldSelector, ResourceFieldSelector

ENV_FIELDS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
VOLUME_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
FIELDS = (
    ENV_FIELDS | VOLUME_FIELDS | {"spec.host", "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
"""Those a path may name at all: which of them are given depends on to what."""

RESOURCES = frozenset(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")

_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1", "cpu"),
    "memory": (_UNITS, ", ".join(_UNITS), "memory"),
    "ephemeral-storage": (_UNITS, ", ".join(_UNITS), "local ephemeral storage"),
    "hugepages": (_UNITS, ", ".join(_UNITS), "hugepages"),
}
"""Of each resource: the divisors, how they are listed, and its name in that sentence."""


def validate_field_ref(ref: ObjectFieldSelector, path: str, fields: frozenset[str]) -> Iterator[Cause]:
    if not ref.api_version:
        yield required(f"{path}.apiVersion")
        return
    if not ref.field_path:
        yield required(f"{path}.fieldPath")
        return
    label, subscripted, key = ref.field_path.partition("['")
    subscripted = subscripted if label and ref.field_path.endswith("']") else ""
    why = _unknown(ref, label if subscripted else ref.field_path, subscripted=bool(subscripted))
    if why:
        yield invalid(f"{path}.fieldPath", ref.field_path, f"error converting fieldPath: {why}")
    elif subscripted:
        key = key.removesuffix("']")
        key = key if label == "metadata.labels" else key.lower()
        yield from all_invalid(path, key, names.qualified_name(key))
    elif ref.field_path not in fields:
        yield not_supported(f"{path}.fieldPath", ref.field_path, fields)


def _unknown(ref: ObjectFieldSelector, label: str, *, subscripted: bool) -> str:
    if ref.api_version != "v1":
        return f"unsupported pod version: {ref.api_version}"
    if subscripted:
        keyed = label in ("metadata.labels", "metadata.annotations")
        return "" if keyed else f"field label does not support subscript: {label}"
    return "" if label in FIELDS else f"field label not supported: {label}"


def validate_resource_ref(ref: ResourceFieldSelector, path: str, *, volume: bool) -> Iterator[Cause]:
    if volume and not ref.container_name:
        yield required(f"{path}.containerName")
    elif not ref.resource:
        yield required(f"{path}.resource")
    elif ref.resource not in RESOURCES and not ref.resource.startswith(HUGE_PAGES):
        yield not_supported(f"{path}.resource", ref.resource, RESOURCES)
    if ref.divisor:
        yield from _validate_divisor(ref.resource, ref.divisor, f"{path}.divisor")


def _validate_divisor(resource: str, divisor: Quantity, path: str) -> Iterator[Cause]:
    kind = "hugepages" if resource.startswith(HUGE_PAGES) else resource.partition(".")[2]
    if kind not in _DIVISORS or (kind != "hugepages" and resource not in RESOURCES):
        return
    allowed, listed, name = _DIVISORS[kind]
    if str(divisor) not in allowed:
        why = f"only divisor's values {listed} are supported with the {name} resource"
        yield invalid(path, resource, why)
