"""A pod as a row of `kubectl get pods`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME, NONE, or_none
from podling.apiserver.registry.kind import Column
from podling.apiserver.registry.pod.phrase import is_condition_true, summarize
from podling.model.pod import Pod

COLUMNS = (
    NAME,
    Column("Ready", description="Containers that are ready, of all that run beside each other."),
    Column("Status", description="What the pod as a whole is doing, or what holds it up."),
    Column("Restarts", description="Restarts of its containers, and how long ago the last one was."),
    AGE,
    Column("IP", description="Address of the pod in the cluster's network.", priority=1),
    Column("Node", description="Node the pod is bound to.", priority=1),
    Column("Nominated Node", description="Node where room is being made for the pod.", priority=1),
    Column("Readiness Gates", description="Readiness gates that are met, of all.", priority=1),
)


def pod_row(pod: Pod, now: datetime) -> list[Any]:
    summary = summarize(pod)
    return [
        pod.metadata.name,
        f"{summary.ready}/{summary.total}",
        summary.phrase,
        summary.restarts(now),
        age(pod.metadata.creation_timestamp, now),
        or_none(pod.status.pod_ip),
        or_none(pod.spec.node_name),
        or_none(pod.status.nominated_node_name),
        _readiness_gates(pod),
    ]


def _readiness_gates(pod: Pod) -> str:
    gates = pod.spec.readiness_gates
    met = sum(is_condition_true(pod, gate.condition_type) for gate in gates)
    return f"{met}/{len(gates)}" if gates else NONE
