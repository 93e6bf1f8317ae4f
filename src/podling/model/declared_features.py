"""What a pod needs of its node that not every node has: features that a kubelet declares while they are new,
in `status.declaredFeatures`, so that a control plane of a later version asks no older node for them. Pure.
"""

from __future__ import annotations

from podling.model.container import Container
from podling.model.pod import PodSpec
from podling.model.resources import is_sidecar

RESTART_ALL = "RestartAllContainersOnContainerExits"
RESIZE_POD = "InPlacePodLevelResourcesVerticalScaling"
RESIZE_INIT = "InPlacePodVerticalScalingInitContainers"


def needed_to_run(spec: PodSpec) -> frozenset[str]:
    return frozenset({RESTART_ALL} if any(map(_restarts_all, _containers(spec))) else ())


def needed_to_change(new: PodSpec, old: PodSpec) -> frozenset[str]:
    """Of a change to a pod that is on its node."""
    needed = set()
    if new.resources != old.resources:
        needed.add(RESIZE_POD)
    if any(map(_is_resized, new.init_containers, old.init_containers)):
        needed.add(RESIZE_INIT)
    return frozenset(needed)


def _containers(spec: PodSpec) -> list[Container]:
    return [*spec.containers, *spec.init_containers]


def _restarts_all(container: Container) -> bool:
    return any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules)


def _is_resized(new: Container, old: Container) -> bool:
    return new.resources != old.resources and not is_sidecar(old)
