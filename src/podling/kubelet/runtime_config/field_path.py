"""Where a container is in its pod's spec, as events say it: `spec.initContainers{name}`. Pure."""

from __future__ import annotations

from podling.kubelet.container_types import ContainerType, all_containers
from podling.model.pod import Pod

_LISTS = {
    ContainerType.REGULAR: "containers",
    ContainerType.INIT: "initContainers",
    ContainerType.SIDECAR: "initContainers",
    ContainerType.EPHEMERAL: "ephemeralContainers",
}


def field_path(kind: ContainerType, name: str) -> str:
    return f"spec.{_LISTS[kind]}{{{name}}}"


def field_paths(pod: Pod) -> dict[str, str]:
    """Of every container of the pod, by name."""
    return {container.name: field_path(kind, container.name) for kind, container in all_containers(pod)}
