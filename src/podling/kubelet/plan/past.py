"""Containers that ran according to the pod's status and that the runtime does not have any more. They count
as ended. Pure.

The runtime may have been emptied, or have lost its disk. A container that is not to be restarted is then not
started again, and an ephemeral container never is.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from podling.kubelet.plan.restart import LOST_EXIT_CODE, STATUS_UNKNOWN
from podling.kubelet.pod.containers import ContainerType, all_containers
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedPod
from podling.model.time import parse_time
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStateTerminated, ContainerStatus

_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


def with_past(pod: Pod, observed: ObservedPod) -> ObservedPod:
    """`observed` with `past` filled from the pod's status."""
    there = {container.name for container in observed.containers}
    shown = pod.status
    lists = (shown.container_statuses, shown.init_container_statuses, shown.ephemeral_container_statuses)
    statuses = {status.name: status for listed in lists for status in listed if status.name not in there}
    past = []
    for kind, container in all_containers(pod) if statuses else ():
        status = statuses.get(container.name)
        if status and (ended := _end(kind, status)):
            past.append(_instance(kind, status, ended))
    return replace(observed, past=tuple(past)) if past else observed


def _end(kind: ContainerType, status: ContainerStatus) -> ContainerStateTerminated | None:
    """How the newest instance ended, None if there was none. What has a last state and waits for its next
    instance has that still to come, unless it is an ephemeral container."""
    if status.state.running:
        return ContainerStateTerminated(
            exit_code=LOST_EXIT_CODE,
            reason=STATUS_UNKNOWN,
            started_at=status.state.running.started_at,
            container_id=status.container_id,
        )
    if kind is ContainerType.EPHEMERAL:
        return status.state.terminated or status.last_state.terminated
    return status.state.terminated


def _instance(
    kind: ContainerType, status: ContainerStatus, ended: ContainerStateTerminated
) -> ObservedContainer:
    return ObservedContainer(
        id=ended.container_id.rpartition("/")[2],
        name=status.name,
        type=kind,
        sandbox_id="",
        attempt=status.restart_count,
        state=ContainerState.EXITED,
        created_at=_time(ended.started_at),
        started_at=_time(ended.started_at),
        finished_at=_time(ended.finished_at),
        exit_code=ended.exit_code,
        reason=ended.reason,
        message=ended.message,
        image=status.image,
        image_id=status.image_id,
    )


def _time(text: str | None) -> datetime:
    return parse_time(text) if text else _UNKNOWN
