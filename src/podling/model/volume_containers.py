"""Volume containers (R-VOL-1, gate `ContainerVolumes`): containers that each initialize one volume.

They start together before all init containers, and each must end well. But for that they are init containers:
a node sees them at the head of that list, and their statuses are among those of init containers.
"""

from __future__ import annotations

import msgspec

from podling.model.container import Container
from podling.model.pod import Pod, PodSpec


def volume_containers(spec: PodSpec) -> list[Container]:
    return [volume.container for volume in spec.volumes if volume.container is not None]


def volume_container_names(spec: PodSpec) -> frozenset[str]:
    return frozenset(container.name for container in volume_containers(spec))


def with_volume_containers(pod: Pod) -> Pod:
    """The pod as a node runs it. The same object when it has none."""
    first = volume_containers(pod.spec)
    if not first:
        return pod
    known = {container.name for container in pod.spec.init_containers}
    heads = [container for container in first if container.name not in known]
    spec = msgspec.structs.replace(pod.spec, init_containers=[*heads, *pod.spec.init_containers])
    return msgspec.structs.replace(pod, spec=spec)
