"""Ephemeral containers: each entry is started once, whatever state the rest of the pod is in (R-EPH-3). Pure.

Where entries may be removed (R-EPH-11, R-DBG-1), the container of a removed entry is stopped and its instance
removed; then the name can be used again. A new entry under that name is told from the old one by its
definition, or by this kubelet having stopped the instance for its removal.
"""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.plan.draft import Draft
from podling.kubelet.plan.ending import DEFAULT_GRACE, MINIMUM_GRACE
from podling.kubelet.plan.restart import changed, retry_at
from podling.kubelet.pod.actions import RemoveContainer, StartContainer, StopContainer
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedPod
from podling.model.gates import Gates
from podling.model.types.container import EphemeralContainer
from podling.model.types.pod import Pod

REMOVING = ("DebugSubresource", "EphemeralContainerRemoval", "ExecEphemeralContainer")
"""The gates with any of which the API server allows to remove an entry."""


def plan_ephemeral(draft: Draft, pod: Pod, gates: Gates) -> None:
    removing = any(gates.enabled(name) for name in REMOVING)
    if gates.enabled("EphemeralContainers"):
        for container in pod.spec.ephemeral_containers:
            newest = draft.observed.newest(container.name)
            if removing and newest and _of_earlier_entry(container, newest, draft.observed):
                _succeed(draft, pod, container, newest)
            else:
                _start_once(draft, container, newest)
    if removing:
        _end_removed(draft, pod)


def _start_once(draft: Draft, container: EphemeralContainer, newest: ObservedContainer | None) -> None:
    if newest and newest.state is ContainerState.CREATED and not draft.starting(container.name):
        # Created and never started: whoever made it died before it ran, so its one start is still to come.
        draft.add(RemoveContainer(newest.id, newest.name))
    elif not newest:
        _start(draft, container, attempt=0)


def _start(draft: Draft, container: EphemeralContainer, attempt: int) -> None:
    observed = draft.observed
    if draft.starting(container.name) or not observed.volumes_ready:
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
        draft.add(StartContainer(container.name, ContainerType.EPHEMERAL, attempt, target_id=joined))


def target_of(container: EphemeralContainer, observed: ObservedPod) -> ObservedContainer | None:
    """The running instance whose process namespace it joins (R-EPH-4)."""
    target = observed.current(container.target_container_name)
    return target if target and target.running else None


def _of_earlier_entry(
    container: EphemeralContainer, newest: ObservedContainer, observed: ObservedPod
) -> bool:
    """An entry cannot be changed, so an instance with another definition was another entry's; and what was
    stopped or is being let go was found without one.
    """
    going = RemoveContainer(newest.id, newest.name) in observed.in_flight
    return going or newest.id in observed.restarting or changed(container, newest)


def _succeed(draft: Draft, pod: Pod, container: EphemeralContainer, earlier: ObservedContainer) -> None:
    """The one start of an entry whose name an instance still has, once that has ended."""
    if earlier.exited:
        _start(draft, container, attempt=earlier.attempt + 1)
    else:
        _end(draft, pod, earlier)


def _end_removed(draft: Draft, pod: Pod) -> None:
    wanted = {container.name for container in pod.spec.ephemeral_containers}
    for instance in draft.observed.containers:
        if instance.type is ContainerType.EPHEMERAL and instance.name not in wanted:
            _end(draft, pod, instance)


def _end(draft: Draft, pod: Pod, instance: ObservedContainer) -> None:
    """Stop or remove an instance without an entry. A start in flight is waited for; its instance is next."""
    if draft.starting(instance.name):
        return
    if not instance.alive:
        draft.add(RemoveContainer(instance.id, instance.name))
        return
    grace = pod.spec.termination_grace_period_seconds
    seconds = max(DEFAULT_GRACE if grace is None else grace, MINIMUM_GRACE)
    message = f"Stopping container {instance.name}"
    draft.add(
        StopContainer(
            instance.id, instance.name, seconds, "Removed", message, restart=True, pod_grace=seconds
        )
    )
