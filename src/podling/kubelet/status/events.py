"""Events that follow from a change of status, and not from an action of the kubelet. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podling.kubelet.cri_config.environment import field_path
from podling.kubelet.plan.ending import DEADLINE_EXCEEDED
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.status.conditions import StatusEvent, resize_events
from podling.model.gates import Gates
from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus, PodStatus

GATE = "EphemeralContainers"


def status_events(pod: Pod, old: PodStatus, new: PodStatus, gates: Gates) -> Iterator[StatusEvent]:
    if new.reason == DEADLINE_EXCEEDED and old.reason != new.reason:
        yield StatusEvent(False, new.reason, new.message)
    yield from resize_events(pod, old, new)
    if not gates.enabled(GATE):
        yield from _not_started(old, new)
    before = {status.name: _waiting(status) for status in _all(old)}
    states = {status.name: _waiting(status) for status in _all(new)}
    for kind, container in all_containers(pod):
        reason = states.get(container.name, "")
        if reason != before.get(container.name, ""):
            yield from _back_off(pod, container, reason, field_path(kind, container.name))


def _not_started(old: PodStatus, new: PodStatus) -> Iterator[StatusEvent]:
    """Once for each, when it is seen first: the API server, whose gate is on, has taken it (R-EPH-14)."""
    known = {status.name for status in old.ephemeral_container_statuses}
    for status in new.ephemeral_container_statuses:
        if status.name not in known and status.state.waiting:
            message = (
                f"Ephemeral container {status.name} is not started: the kubelet's feature gate {GATE} is off"
            )
            path = field_path(ContainerType.EPHEMERAL, status.name)
            yield StatusEvent(True, "FeatureGateDisabled", message, path)


def _back_off(pod: Pod, container: EphemeralContainerCommon, reason: str, path: str) -> Iterator[StatusEvent]:
    meta = pod.metadata
    if reason == "CrashLoopBackOff":
        whose = f"{container.name} in pod {meta.name}_{meta.namespace}({meta.uid})"
        yield StatusEvent(True, "BackOff", f"Back-off restarting failed container {whose}", path)
    elif reason == "ImagePullBackOff":
        # Of the spec: the status names the image that ran last.
        yield StatusEvent(False, "BackOff", f'Back-off pulling image "{container.image}"', path)
        yield StatusEvent(True, "Failed", "Error: ImagePullBackOff", path)


def _waiting(status: ContainerStatus) -> str:
    return status.state.waiting.reason if status.state.waiting else ""


def _all(status: PodStatus) -> list[ContainerStatus]:
    return [
        *status.init_container_statuses,
        *status.container_statuses,
        *status.ephemeral_container_statuses,
    ]
