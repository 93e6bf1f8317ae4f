"""Ephemeral containers: each is started once, in whatever state the rest of the pod is, and never again
(R-EPH-3)."""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.container_types import ContainerType
from podling.kubelet.gates import Gates
from podling.kubelet.observed import ContainerState, ObservedContainer, ObservedPod
from podling.kubelet.planning.backoff import retry_at
from podling.kubelet.planning.container_plan import has_run, recorded
from podling.kubelet.planning.draft import Draft
from podling.kubelet.planning.ending import DEFAULT_GRACE, MINIMUM_GRACE
from podling.kubelet.pod_actions import RemoveContainer, StartContainer, StopContainer
from podling.model.container import EphemeralContainer
from podling.model.pod import Pod


def plan_ephemeral(draft: Draft, pod: Pod, gates: Gates) -> None:
    if gates.ephemeral_containers:
        for container in pod.spec.ephemeral_containers:
            _start_once(draft, pod, container)
    if gates.ephemeral_container_removal:
        _stop_removed(draft, pod)


def _start_once(draft: Draft, pod: Pod, container: EphemeralContainer) -> None:
    observed = draft.observed
    newest = observed.newest(container.name)
    if draft.starting(container.name) or not observed.volumes_ready or _spent(pod, newest, container.name):
        return
    if newest:
        # Created and never started: whoever made it died before it ran, so its one start is still to come.
        draft.add(RemoveContainer(newest.id, newest.name))
        return
    target = target_of(container, observed)
    if container.target_container_name and target is None:
        return
    failure = observed.failures.get(container.name)
    at: datetime = retry_at(failure) if failure else draft.now
    if draft.now < at:
        draft.wake(at)
    else:
        joined = target.id if target else ""
        draft.add(StartContainer(container.name, ContainerType.EPHEMERAL, target_id=joined))


def _spent(pod: Pod, newest: ObservedContainer | None, name: str) -> bool:
    """Whether it has had its one start, as the runtime or the pod's status remembers."""
    if newest:
        return newest.state is not ContainerState.CREATED
    past = recorded(pod.status, name)
    return past is not None and has_run(past)


def target_of(container: EphemeralContainer, observed: ObservedPod) -> ObservedContainer | None:
    """The running instance whose process namespace it joins (R-EPH-4)."""
    target = observed.current(container.target_container_name)
    return target if target and target.running else None


def _stop_removed(draft: Draft, pod: Pod) -> None:
    """Gate EphemeralContainerRemoval (R-EPH-11)."""
    wanted = {c.name for c in pod.spec.ephemeral_containers}
    grace = pod.spec.termination_grace_period_seconds
    seconds = max(DEFAULT_GRACE if grace is None else grace, MINIMUM_GRACE)
    for c in draft.observed.containers:
        if c.type is ContainerType.EPHEMERAL and c.running and c.name not in wanted:
            draft.add(
                StopContainer(
                    c.id, c.name, seconds, "Removed", f"Stopping container {c.name}", pod_grace=seconds
                )
            )
