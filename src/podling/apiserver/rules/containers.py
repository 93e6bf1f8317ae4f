"""All containers of a pod, of all three lists, in Kubernetes' order."""

from __future__ import annotations

from collections.abc import Iterator

from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.pod import PodSpec


def containers_with_paths(spec: PodSpec, path: str) -> Iterator[tuple[EphemeralContainerCommon, str]]:
    """Each container with its path, such as `spec.containers[0]`."""
    for i, volume in enumerate(spec.volumes):
        if volume.container is not None:
            yield volume.container, f"{path}.volumes[{i}].container"
    for i, init in enumerate(spec.init_containers):
        yield init, f"{path}.initContainers[{i}]"
    for i, app in enumerate(spec.containers):
        yield app, f"{path}.containers[{i}]"
    for i, ephemeral in enumerate(spec.ephemeral_containers):
        yield ephemeral, f"{path}.ephemeralContainers[{i}]"
