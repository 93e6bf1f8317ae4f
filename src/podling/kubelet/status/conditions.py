"""The conditions of a pod that the kubelet owns, in Kubernetes' order and words, and the events of a resize.
Pure.

Conditions of other owners are kept as they are. PodResizePending, PodResizeInProgress and
AllContainersRestarting are present only while they apply, the last one also as False after it has been True.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from podling.kubelet.plan.ending import FAILED, SUCCEEDED
from podling.kubelet.plan.resize import is_in_progress
from podling.kubelet.plan.rounds import ender
from podling.kubelet.pod.containers import ContainerType, init_containers
from podling.kubelet.pod.observed import ObservedPod
from podling.model.codec.fields import Int64, Part
from podling.model.codec.json import encode
from podling.model.time import rfc3339
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus, PodCondition, PodStatus


class StatusEvent(NamedTuple):
    warning: bool
    reason: str
    message: str
    field_path: str = ""


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
    status: bool
    reason: str = ""
    message: str = ""


class Facts(NamedTuple):
    """What the conditions follow from."""

    phase: str
    statuses: Mapping[str, ContainerStatus]
    """By container name."""
    sandbox_ready: bool
    begun: bool
    """App containers were created in this sandbox, which proves that it is initialized."""
    debugged: bool
    """An ephemeral container has been started."""
    disruption: str = ""
    """Why the kubelet ends the pod for the sake of others (DisruptionTarget)."""


def pod_conditions(pod: Pod, facts: Facts, now: datetime) -> list[PodCondition]:
    kept = [condition for condition in pod.status.conditions if condition.type not in OWNED]
    judgements: dict[str, Judgement] = {
        READY_TO_START: Judgement(facts.sandbox_ready),
        INITIALIZED: _initialized(pod, facts),
        READY: _ready(pod, facts, kept),
        CONTAINERS_READY: _containers_ready(pod, facts),
        SCHEDULED: Judgement(True),
    }
    if facts.debugged or any(c.type == EPHEMERAL_STARTED for c in pod.status.conditions):
        # Set with the first one and never cleared (R-EPH-10).
        judgements[EPHEMERAL_STARTED] = Judgement(True)
    if facts.disruption:
        kept = [condition for condition in kept if condition.type != DISRUPTION_TARGET]
        judgements[DISRUPTION_TARGET] = Judgement(True, TERMINATED_BY_KUBELET, facts.disruption)
    make = condition_maker(pod, now)
    return [*map(msgspec.structs.replace, kept), *(make(kind, j) for kind, j in judgements.items())]


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
    if facts.begun:
        return Judgement(True)
    unfinished = [
        container.name
        for kind, container in init_containers(pod)
        if not _init_passed(kind, facts.statuses[container.name])
    ]
    if unfinished:
        message = f"containers with incomplete status: [{' '.join(unfinished)}]"
        return Judgement(False, "ContainersNotInitialized", message)
    return Judgement(True)


def _init_passed(kind: ContainerType, status: ContainerStatus) -> bool:
    return bool(status.started) if kind is ContainerType.SIDECAR else status.ready


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


def _ready(pod: Pod, facts: Facts, others: Sequence[PodCondition]) -> Judgement:
    containers = _containers_ready(pod, facts)
    if not containers.status:
        return containers
    found = {condition.type: condition.status for condition in others}
    faults = []
    for gate in pod.spec.readiness_gates:
        kind = gate.condition_type
        if kind not in found:
            faults.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found[kind] != "True":
            faults.append(f'the status of pod readiness gate "{kind}" is not "True", but {found[kind]}')
    return Judgement(False, "ReadinessGatesNotReady", ", ".join(faults)) if faults else Judgement(True)


def resize_conditions(pod: Pod, observed: ObservedPod, now: datetime) -> Iterator[PodCondition]:
    make = condition_maker(pod, now)
    if pending := observed.pending_resize:
        yield make(RESIZE_PENDING, Judgement(True, pending.reason, pending.message))
    if is_in_progress(pod, observed):
        failure = observed.resize_failure
        why = Judgement(True, failure.reason, failure.message) if failure else Judgement(True)
        made = make(RESIZE_IN_PROGRESS, why)
        generation = observed.resized_generation or pod.metadata.generation
        yield msgspec.structs.replace(made, observed_generation=generation)


def resize_events(pod: Pod, old: PodStatus, new: PodStatus) -> Iterator[StatusEvent]:
    before, after = _found(old, RESIZE_PENDING), _found(new, RESIZE_PENDING)
    if after and (before is None or (before.reason, before.message) != (after.reason, after.message)):
        text = _text(f"Pod resize {after.reason}", pod, after.observed_generation, after.message)
        yield StatusEvent(True, f"Resize{after.reason}", text)
    yield from _progress(pod, _found(old, RESIZE_IN_PROGRESS), _found(new, RESIZE_IN_PROGRESS))


def _progress(pod: Pod, before: PodCondition | None, after: PodCondition | None) -> Iterator[StatusEvent]:
    if after is None:
        if before is not None:
            generation = before.observed_generation
            yield StatusEvent(False, "ResizeCompleted", _text("Pod resize completed", pod, generation))
        return
    generation = after.observed_generation
    if before is None or before.observed_generation != generation:
        yield StatusEvent(False, "ResizeStarted", _text("Pod resize started", pod, generation))
    if after.reason == "Error" and (before is None or before.message != after.message):
        text = _text("Pod resize error", pod, generation, after.message)
        yield StatusEvent(True, "ResizeError", text)


def _found(status: PodStatus, kind: str) -> PodCondition | None:
    return next((condition for condition in status.conditions if condition.type == kind), None)


class _Share(Part):
    name: str = ""
    resources: ResourceRequirements | None = None


class _Summary(Part):
    init_containers: list[_Share] = []
    containers: list[_Share] = []
    generation: Int64 = 0
    error: str = ""


def _text(what: str, pod: Pod, generation: int, error: str = "") -> str:
    """With the resources the pod was given, as JSON."""
    summary = _Summary(
        init_containers=_shares(pod.spec.init_containers),
        containers=_shares(pod.spec.containers),
        generation=generation,
        error=error,
    )
    return f"{what}: {encode(summary).decode()}"


def _shares(containers: list[Container]) -> list[_Share]:
    return [_Share(name=container.name, resources=container.resources) for container in containers]


def restart_all_condition(pod: Pod, observed: ObservedPod, now: datetime) -> Iterator[PodCondition]:
    """AllContainersRestarting: True until the last container of the earlier round is gone, then False; absent
    if the pod was never restarted."""
    make = condition_maker(pod, now)
    if ended := ender(observed):
        why = f"Container {ended.name} exited with code {ended.exit_code}, triggering pod restart"
        yield make(RESTARTING, Judgement(True, "ContainerExited", why))
    elif observed.round or any(condition.type == RESTARTING for condition in pod.status.conditions):
        yield make(RESTARTING, Judgement(False))
