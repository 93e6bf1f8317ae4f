"""Fields that are alpha in Kubernetes v1.36: everybody knows them, and a pod gets none where their gate is
off. What a pod has already it keeps.
"""

from __future__ import annotations

from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.model.container import Lifecycle
from podling.model.gates import Gates
from podling.model.pod import PodSpec


def drop_alpha_fields(new: PodSpec, old: PodSpec | None, gates: Gates) -> None:
    """Changes `new`. Nothing schedules groups of pods here: their gate, `GenericWorkload`, is always off."""
    if old is None or old.scheduling_group is None:
        new.scheduling_group = None
    if not gates.enabled("ContainerStopSignals") and (old is None or not _has_stop_signal(old)):
        _drop_stop_signals(new)


def _has_stop_signal(spec: PodSpec) -> bool:
    lifecycles = (container.lifecycle for container, _ in containers_with_paths(spec, ""))
    return any(lifecycle is not None and lifecycle.stop_signal is not None for lifecycle in lifecycles)


def _drop_stop_signals(spec: PodSpec) -> None:
    for container, _ in containers_with_paths(spec, ""):
        lifecycle = container.lifecycle
        if lifecycle is not None and lifecycle.stop_signal is not None:
            lifecycle.stop_signal = None
            container.lifecycle = lifecycle if lifecycle != Lifecycle() else None
