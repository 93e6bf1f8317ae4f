"""Fields that are alpha in Kubernetes v1.36: everybody knows them, and a pod gets none where their gate is
off. What a pod has already it keeps.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.model.container import Lifecycle
from podling.model.gates import Gates
from podling.model.pod import PodSpec
from podling.model.pod_status import PodStatus, VolumeMountStatus


def drop_alpha_fields(new: PodSpec, old: PodSpec | None, gates: Gates) -> None:
    """Changes `new`. Nothing schedules groups of pods here: their gate, `GenericWorkload`, is always off."""
    if old is None or old.scheduling_group is None:
        new.scheduling_group = None
    if not gates.enabled("ContainerStopSignals") and (old is None or not _has_stop_signal(old)):
        _drop_stop_signals(new)


def drop_alpha_status(new: PodStatus, old: PodStatus) -> None:
    """Changes `new`. Nothing here tells which image a volume is, or of claims to a node's resources: their
    gates, `ImageVolumeWithDigest` and `DRANodeAllocatableResources`, are always off. The stop signal in the
    status of a container Kubernetes leaves to who writes it."""
    if all(mount.volume_status is None for mount in _mounts(old)):
        for mount in _mounts(new):
            mount.volume_status = None
    if not old.node_allocatable_resource_claim_statuses:
        new.node_allocatable_resource_claim_statuses = []


def _mounts(status: PodStatus) -> Iterator[VolumeMountStatus]:
    for containers in (
        status.init_container_statuses,
        status.container_statuses,
        status.ephemeral_container_statuses,
    ):
        for container in containers:
            yield from container.volume_mounts


def _has_stop_signal(spec: PodSpec) -> bool:
    lifecycles = (container.lifecycle for container, _ in containers_with_paths(spec, ""))
    return any(lifecycle is not None and lifecycle.stop_signal is not None for lifecycle in lifecycles)


def _drop_stop_signals(spec: PodSpec) -> None:
    for container, _ in containers_with_paths(spec, ""):
        lifecycle = container.lifecycle
        if lifecycle is not None and lifecycle.stop_signal is not None:
            lifecycle.stop_signal = None
            container.lifecycle = lifecycle if lifecycle != Lifecycle() else None
