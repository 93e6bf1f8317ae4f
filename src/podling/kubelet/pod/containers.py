"""The containers of a pod: their types, their order in the spec, and the errors of one that cannot be
started.
"""

from __future__ import annotations

from enum import Enum

from podling.cri.interface import UNAVAILABLE, RuntimeFault
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus, PodStatus

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


def init_containers(pod: Pod) -> list[tuple[ContainerType, Container]]:
    return [(init_type(c), c) for c in pod.spec.init_containers]


def all_containers(pod: Pod) -> list[tuple[ContainerType, Container | EphemeralContainer]]:
    """Init containers and sidecars, then app containers, then ephemeral ones."""
    return [
        *init_containers(pod),
        *((ContainerType.REGULAR, c) for c in pod.spec.containers),
        *((ContainerType.EPHEMERAL, c) for c in pod.spec.ephemeral_containers),
    ]


def container_named(pod: Pod, name: str) -> Container | EphemeralContainer | None:
    return next((container for _, container in all_containers(pod) if container.name == name), None)


def all_statuses(status: PodStatus) -> list[ContainerStatus]:
    """Those of containers of every type."""
    return [
        *status.container_statuses,
        *status.init_container_statuses,
        *status.ephemeral_container_statuses,
    ]


class StartError(Exception):
    """A container or sandbox could not be started. `reason` is the waiting reason in the container's
    status."""

    def __init__(self, reason: str, message: str, *, counts: bool = True, instance: str = "") -> None:
        """`counts` for the back-off: not if the runtime was unavailable. `instance` is the id of a container
        that was created and could not be started."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.counts = counts
        self.instance = instance


class ConfigError(Exception):
    """A container that cannot be configured: waiting reason CreateContainerConfigError, with this message."""


def refused(reason: str, message: str, fault: RuntimeFault, *, instance: str = "") -> StartError:
    """The StartError for a runtime's fault in a call that creates or starts something."""
    return StartError(reason, message, counts=fault.code != UNAVAILABLE, instance=instance)


def rpc_text(fault: RuntimeFault) -> str:
    """The fault as Go prints a gRPC error: `rpc error: code = NotFound desc = …`."""
    code = "".join(part.capitalize() for part in fault.code.split("_"))
    return f"rpc error: code = {code} desc = {fault.message}"
