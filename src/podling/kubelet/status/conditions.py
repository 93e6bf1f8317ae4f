"""The conditions of a pod that the kubelet owns, in Kubernetes' order and words; and what of a pod's status
is not the kubelet's to change: conditions of other writers, and what the API server does not allow. Pure.

PodResizePending, PodResizeInProgress and AllContainersRestarting are present only while they apply, the last
one also as False after it has been True.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from podling.kubelet.plan.ending import FAILED, SUCCEEDED
from podling.kubelet.plan.resize import is_in_progress
from podling.kubelet.plan.restart import ender
from podling.kubelet.pod.containers import ContainerType, init_containers
from podling.kubelet.pod.observed import ObservedPod
from podling.model.rules.status import ended_for_good
from podling.model.time import rfc3339
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import ContainerStatus, PodCondition, PodStatus

READY_TO_START = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
READY = "Ready"
CONTAINERS_READY = "ContainersReady"
SCHEDULED = "PodScheduled"
EPHEMERAL_STARTED = "EphemeralContainersStarted"
DISRUPTION_TARGET = "DisruptionTarget"
RESTARTING = "AllContainersRestarting"
RESIZE_PENDING = "PodResizePending"
RESIZE_IN_PROGRESS = "PodResizeInProgress"
OWNED = (
    READY_TO_START,
    INITIALIZED,
    READY,
    CONTAINERS_READY,
    SCHEDULED,
    EPHEMERAL_STARTED,
    RESTARTING,
    RESIZE_PENDING,
    RESIZE_IN_PROGRESS,
)

TERMINATED_BY_KUBELET = "TerminationByKubelet"
"""The reason of a DisruptionTarget that the kubelet sets; others set that condition, too."""


def is_own(condition: PodCondition) -> bool:
    """Whether the kubelet is who writes this condition."""
    return condition.type in OWNED or condition.reason == TERMINATED_BY_KUBELET


class Judgement(NamedTuple):
    """Status, reason and message of one condition."""

    status: bool
    reason: str = ""
    message: str = ""


class Facts(NamedTuple):
    """What of the pod's status the conditions follow from."""

    phase: str
    statuses: Mapping[str, ContainerStatus]
    """By container name."""
    begun: bool
    """App containers were created in this sandbox, which proves that it is initialized."""
    debugged: bool
    """An ephemeral container has been started."""


def pod_conditions(pod: Pod, observed: ObservedPod, facts: Facts, now: datetime) -> list[PodCondition]:
    """All conditions of the pod: those of other writers as they are, then the kubelet's."""
    kept = [condition for condition in pod.status.conditions if condition.type not in OWNED]
    found = {condition.type: condition.status for condition in kept}
    told = observed.termination
    containers_ready = ready = _containers_ready(pod, facts)
    # A pod is Ready when its containers are and each of its readiness gates is True.
    faults = []
    for gate in pod.spec.readiness_gates if containers_ready.status else ():
        kind = gate.condition_type
        if kind not in found:
            faults.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found[kind] != "True":
            faults.append(f'the status of pod readiness gate "{kind}" is not "True", but {found[kind]}')
    if faults:
        ready = Judgement(False, "ReadinessGatesNotReady", ", ".join(faults))
    judgements: dict[str, Judgement] = {
        READY_TO_START: Judgement(observed.is_prepared),
        INITIALIZED: _initialized(pod, facts),
        READY: ready,
        CONTAINERS_READY: containers_ready,
        SCHEDULED: Judgement(True),
    }
    if facts.debugged or any(c.type == EPHEMERAL_STARTED for c in pod.status.conditions):
        # Set with the first one and never cleared (R-EPH-10).
        judgements[EPHEMERAL_STARTED] = Judgement(True)
    if told and told.is_disruption and told.message:
        kept = [condition for condition in kept if condition.type != DISRUPTION_TARGET]
        judgements[DISRUPTION_TARGET] = Judgement(True, TERMINATED_BY_KUBELET, told.message)
    make = condition_maker(pod, now)
    return [
        *map(replace, kept),
        *(make(kind, judgement) for kind, judgement in judgements.items()),
        *restart_all_condition(pod, observed, now),
        *resize_conditions(pod, observed, now),
    ]


def condition_maker(pod: Pod, now: datetime) -> Callable[[str, Judgement], PodCondition]:
    """Makes conditions whose transition time is the old one while their status stays the same."""
    old = {condition.type: condition for condition in pod.status.conditions}

    def make(kind: str, judgement: Judgement) -> PodCondition:
        status = "True" if judgement.status else "False"
        before = old.get(kind)
        same = before is not None and before.status == status and before.last_transition_time
        return PodCondition(
            type=kind,
            observed_generation=pod.metadata.generation,
            status=status,
            last_probe_time=before.last_probe_time if before else None,
            last_transition_time=before.last_transition_time if before and same else rfc3339(now),
            reason=judgement.reason,
            message=judgement.message,
        )

    return make


def _initialized(pod: Pod, facts: Facts) -> Judgement:
    if facts.phase == SUCCEEDED:
        return Judgement(True, "PodCompleted")
    unfinished = []
    for kind, container in init_containers(pod) if not facts.begun else ():
        status = facts.statuses[container.name]
        if not (status.started if kind is ContainerType.SIDECAR else status.ready):
            unfinished.append(container.name)
    if unfinished:
        message = f"containers with incomplete status: [{' '.join(unfinished)}]"
        return Judgement(False, "ContainersNotInitialized", message)
    return Judgement(True)


def _containers_ready(pod: Pod, facts: Facts) -> Judgement:
    if facts.phase == SUCCEEDED:
        return Judgement(False, "PodCompleted")
    if facts.phase == FAILED:
        return Judgement(False, "PodFailed")
    sidecars = [c for kind, c in init_containers(pod) if kind is ContainerType.SIDECAR]
    unready = [c.name for c in (*sidecars, *pod.spec.containers) if not facts.statuses[c.name].ready]
    if unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        return Judgement(False, "ContainersNotReady", message)
    return Judgement(True)


def resize_conditions(pod: Pod, observed: ObservedPod, now: datetime) -> Iterator[PodCondition]:
    """PodResizePending while the spec's resources are not allocated, PodResizeInProgress while the allocated
    ones are not actuated."""
    make = condition_maker(pod, now)
    if pending := observed.pending_resize:
        yield make(RESIZE_PENDING, Judgement(True, pending.reason, pending.message))
    if is_in_progress(pod, observed):
        failure = observed.resize_failure
        why = Judgement(True, failure.reason, failure.message) if failure else Judgement(True)
        made = make(RESIZE_IN_PROGRESS, why)
        generation = observed.resized_generation or pod.metadata.generation
        yield replace(made, observed_generation=generation)


def restart_all_condition(pod: Pod, observed: ObservedPod, now: datetime) -> Iterator[PodCondition]:
    """AllContainersRestarting: True until the last container of the earlier round is gone, then False; absent
    if the pod was never restarted."""
    make = condition_maker(pod, now)
    if ended := ender(observed):
        why = f"Container {ended.name} exited with code {ended.exit_code}, triggering pod restart"
        yield make(RESTARTING, Judgement(True, "ContainerExited", why))
    elif observed.round or any(condition.type == RESTARTING for condition in pod.status.conditions):
        yield make(RESTARTING, Judgement(False))


def with_standing(spec: PodSpec, old: PodStatus, new: PodStatus) -> PodStatus:
    """`new` as it may follow `old`, which the server has.

    A container that has ended for good is shown so, also while it runs once more in another sandbox
    (R-INIT-4), until that instance has ended as well. Conditions that are not the kubelet's, such as
    readiness gates, are those of `old`: `new` may have been made before their owners last wrote them.
    """
    made = {s.name: s.container_id for s in new.ephemeral_container_statuses if s.container_id}
    # Where a name may be used again an entry that has an instance of its own is another one (R-DBG-1).
    debug = [
        s for s in old.ephemeral_container_statuses if made.get(s.name, s.container_id) == s.container_id
    ]
    own = [condition for condition in new.conditions if is_own(condition)]
    types = {condition.type for condition in own}
    return replace(
        new,
        conditions=[*(c for c in old.conditions if not is_own(c) and c.type not in types), *own],
        init_container_statuses=_kept(spec, old.init_container_statuses, new.init_container_statuses),
        container_statuses=_kept(spec, old.container_statuses, new.container_statuses),
        ephemeral_container_statuses=_kept(spec, debug, new.ephemeral_container_statuses, ephemeral=True),
    )


def _kept(
    spec: PodSpec, old: list[ContainerStatus], new: list[ContainerStatus], *, ephemeral: bool = False
) -> list[ContainerStatus]:
    ended = {status.name: status for _, status in ended_for_good(old, spec, ephemeral=ephemeral)}
    return [status if status.state.terminated else ended.get(status.name, status) for status in new]


def with_foreign_conditions(own: PodStatus, published: PodStatus) -> PodStatus:
    """The kubelet's newest status, with what others write as the server has it. PodScheduled is theirs: the
    kubelet only says it where nobody did."""
    kept = [c for c in own.conditions if c.type in OWNED and c.type != SCHEDULED]
    foreign = [c for c in published.conditions if c.type not in OWNED or c.type == SCHEDULED]
    return replace(
        own, conditions=kept + foreign, debug_container_statuses=published.debug_container_statuses
    )
