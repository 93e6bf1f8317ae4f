"""What a selector of devices may cost at most, by how much a device may have
(`dynamic-resource-allocation/cel/compile.go` of Kubernetes).
"""

from __future__ import annotations

from podling.apiserver.cel.costs import KEYS, VALUES, Estimate, Path
from podling.apiserver.cel.inference import Inference, Known, functions
from podling.apiserver.cel.types import ANY, BOOL, STRING, Type, map_of, struct

LIMIT = 1_000_000
DEVICE = "kubernetes.DRADevice"
MOST_NAMED = 32
"""Attributes and capacities of a device."""
LONGEST_DRIVER, LONGEST_DOMAIN, LONGEST_NAME, LONGEST_VALUE = 63, 63, 32, 64
_FIELDS = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, ANY)),
    "capacity": map_of(STRING, map_of(STRING, struct("kubernetes.Quantity"))),
    "allowMultipleAllocations": BOOL,
}


class _Device:
    def has(self, name: str) -> bool:
        return name == DEVICE

    def field(self, name: str, field: str) -> Type | None:
        return _FIELDS.get(field)

    def most_at(self, path: Path) -> int | None:
        match path:
            case ("device",):
                return 0
            case ("device", "driver"):
                return LONGEST_DRIVER
            case ("device", "attributes" | "capacity"):
                return MOST_NAMED
            case ("device", "attributes" | "capacity", step):
                return {VALUES: MOST_NAMED, KEYS: LONGEST_DOMAIN}.get(step)
            case ("device", "attributes" | "capacity" as field, step, last) if step == VALUES:
                if last == KEYS:
                    return LONGEST_NAME
                return LONGEST_VALUE if field == "attributes" else None
        return None


KNOWN = Known({"device": struct(DEVICE)}, _Device(), functions())
"""What a selector knows."""


def is_too_complex(found: Inference) -> bool:
    """`found`: of a selector that compiles."""
    return Estimate(found.tree, found, _Device()).cost > LIMIT
