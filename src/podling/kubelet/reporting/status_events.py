"""The events a change of status stands for: what no action reports because nothing is done about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podling.kubelet.container_types import all_containers
from podling.kubelet.planning.ending import DEADLINE_EXCEEDED
from podling.kubelet.reporting.resize_conditions import resize_events
from podling.kubelet.reporting.status_event import StatusEvent
from podling.kubelet.runtime_config.field_path import field_path
from podling.model.container import EphemeralContainerCommon
from podling.model.pod import Pod
from podling.model.pod_status import ContainerStatus, PodStatus


def status_events(pod: Pod, old: PodStatus, new: PodStatus) -> Iterator[StatusEvent]:
    if new.reason == DEADLINE_EXCEEDED and old.reason != new.reason:
        yield StatusEvent(False, new.reason, new.message)
    yield from resize_events(pod, old, new)
    before = {status.name: _waiting(status) for status in _all(old)}
    states = {status.name: _waiting(status) for status in _all(new)}
    for kind, container in all_containers(pod):
        reason = states.get(container.name, "")
        if reason != before.get(container.name, ""):
            yield from _back_off(pod, container, reason, field_path(kind, container.name))


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
