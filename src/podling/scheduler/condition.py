"""What the scheduler writes into a pod's status, as strategic merge patches. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.model import json
from podling.model.pod import Pod
from podling.model.pod_status import PodCondition
from podling.model.time import rfc3339
from podling.scheduler.preemption import PREEMPTED

Patch = dict[str, Any]

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"


def not_scheduled(pod: Pod, reason: str, message: str, nominated: str, now: datetime) -> Patch | None:
    """None when the pod says all of it already."""
    condition = _condition(pod, "PodScheduled", "False", reason, message, now)
    status: Patch = {"conditions": [condition]} if condition else {}
    if nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return _patch(pod, status) if status else None


def preempted(victim: Pod, preemptor: Pod, now: datetime) -> Patch | None:
    message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
    condition = _condition(victim, "DisruptionTarget", "True", PREEMPTED, message, now)
    return _patch(victim, {"conditions": [condition]}) if condition else None


def not_nominated(pod: Pod) -> Patch:
    return _patch(pod, {"nominatedNodeName": None})


def _condition(pod: Pod, type_: str, status: str, reason: str, message: str, now: datetime) -> Any:
    """The time is that of the last change of `status`."""
    standing = next((c for c in pod.status.conditions if c.type == type_), None)
    wanted = PodCondition(
        type=type_,
        observed_generation=pod.metadata.generation,
        status=status,
        last_transition_time=rfc3339(now),
        reason=reason,
        message=message,
    )
    if standing is not None and standing.status == status:
        wanted.last_transition_time = standing.last_transition_time
        wanted.last_probe_time = standing.last_probe_time
        if standing == wanted:
            return None
    return json.to_data(wanted)


def _patch(pod: Pod, status: Patch) -> Patch:
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}
