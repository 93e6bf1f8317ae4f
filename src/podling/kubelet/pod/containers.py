"""The four types of container that a pod can have, and a pod's containers with their types in the spec's
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.pod import Pod

ALWAYS = "Always"
NEVER = "Never"


class ContainerType(Enum):
    """The value of the runtime label `io.kubernetes.container.type` (R-DBG-3)."""

    REGULAR = "REGULAR"
    INIT = "INIT"
    SIDECAR = "SIDECAR"
    EPHEMERAL = "EPHEMERAL"


def type_of_label(label: str) -> ContainerType:
    """Containers without the label, or with one nobody knows, count as regular."""
    return ContainerType(label) if label in ContainerType.__members__ else ContainerType.REGULAR


def init_type(container: Container) -> ContainerType:
    return ContainerType.SIDECAR if container.restart_policy == ALWAYS else ContainerType.INIT


def init_containers(pod: Pod) -> Iterator[tuple[ContainerType, Container]]:
    return ((init_type(c), c) for c in pod.spec.init_containers)


def all_containers(pod: Pod) -> Iterator[tuple[ContainerType, Container | EphemeralContainer]]:
    yield from init_containers(pod)
    yield from ((ContainerType.REGULAR, c) for c in pod.spec.containers)
    yield from ((ContainerType.EPHEMERAL, c) for c in pod.spec.ephemeral_containers)
