"""The conditions of a pod that a kubelet owns, in Kubernetes' order and words; those of others are kept as
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from podling.kubelet.container_types import ContainerType, init_containers
from podling.kubelet.planning.ending import FAILED, SUCCEEDED
from podling.model.pod import Pod
from podling.model.pod_status import ContainerStatus, PodCondition
from podling.model.time import rfc3339

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


class Judgement(NamedTuple):
    status: bool
    reason: str = ""
    message: str = ""


class Facts(NamedTuple):
    """`statuses` by container name; `begun`: app containers have been made in this sandbox, which is only
    possible after initialization; `debugged`: an ephemeral container has been started. `disruption` says why
    the kubelet ends the pod for the sake of others.
    """

    phase: str
    statuses: Mapping[str, ContainerStatus]
    sandbox_ready: bool
    begun: bool
    debugged: bool
    disruption: str = ""


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
        judgements[DISRUPTION_TARGET] = Judgement(True, "TerminationByKubelet", facts.disruption)
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
