"""A pod as a row of `kubectl get pods`, with the columns STATUS, READY and RESTARTS derived from its
containers.

Init containers are read in order up to the first that is not done; only if all are done do the other
containers count. Sidecars that have started count like containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from podling.apiserver.kinds.columns import AGE, NAME, NONE, age, or_none
from podling.apiserver.kinds.kind import Column
from podling.model.rules.resources import with_volume_containers
from podling.model.rules.status import is_condition_true, is_terminal
from podling.model.types.container import Container
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerState, ContainerStatus

NODE_LOST = "NodeLost"

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

ENDED: Mapping[str, tuple[Mapping[str, str]]] = {
    phase: ({"type": "Completed", "status": "True", "reason": phase, "message": message},)
    for phase, message in (
        ("Succeeded", "The pod has completed successfully."),
        ("Failed", "The pod failed."),
    )
}
"""Phase → conditions of the row."""


class Tally(NamedTuple):
    """The number of restarts of a set of containers, and when the last of them ended."""

    restarts: int = 0
    last: str = ""

    def plus(self, status: ContainerStatus) -> Tally:
        ended = status.last_state.terminated
        at = (ended.finished_at if ended else None) or ""
        return Tally(self.restarts + status.restart_count, max(self.last, at))


class Summary(NamedTuple):
    phrase: str
    ready: int
    total: int
    tally: Tally

    def restarts(self, now: datetime) -> str:
        if self.tally.restarts and self.tally.last:
            return f"{self.tally.restarts} ({age(self.tally.last, now)} ago)"
        return str(self.tally.restarts)


class _Init(NamedTuple):
    """The init containers in sum. `phrase`: the STATUS that they cause; empty if none of them holds the pod
    up."""

    phrase: str
    ready: int
    all: Tally
    sidecars: Tally


def summarize(pod: Pod) -> Summary:
    init = _init(pod)
    sidecars = sum(is_sidecar(container) for container in pod.spec.init_containers)
    gated = any(c.type == "PodScheduled" and c.reason == "SchedulingGated" for c in pod.status.conditions)
    scheduled = "SchedulingGated" if gated else pod.status.reason or pod.status.phase
    phrase, ready, tally = init.phrase or scheduled, init.ready, init.all
    if not init.phrase or is_condition_true(pod.status.conditions, "Initialized"):
        phrase, more, tally = _containers(pod, phrase, init.sidecars)
        ready += more
    if pod.metadata.deletion_timestamp and pod.status.reason == NODE_LOST:
        phrase = "Unknown"
    elif pod.metadata.deletion_timestamp and not is_terminal(pod):
        phrase = "Terminating"
    return Summary(phrase, ready, len(pod.spec.containers) + sidecars, tally)


def is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _init(pod: Pod) -> _Init:
    sidecar_names = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    ready, everyone, sidecars = 0, Tally(), Tally()
    for position, status in enumerate(pod.status.init_container_statuses):
        everyone = everyone.plus(status)
        sidecar = status.name in sidecar_names
        if sidecar:
            sidecars = sidecars.plus(status)
        if status.state.terminated is not None and status.state.terminated.exit_code == 0:
            continue
        if sidecar and status.started:
            ready += status.ready
            continue
        waiting = status.state.waiting
        what = _ended(status.state)
        if waiting is not None and not what and waiting.reason != "PodInitializing":
            what = waiting.reason
        progress = f"{position}/{len(with_volume_containers(pod).spec.init_containers)}"
        return _Init(f"Init:{what or progress}", ready, everyone, sidecars)
    return _Init("", ready, everyone, sidecars)


def _ended(state: ContainerState) -> str:
    ended = state.terminated
    if ended is None:
        return ""
    return ended.reason or (f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}")


def _containers(pod: Pod, phrase: str, tally: Tally) -> tuple[str, int, Tally]:
    """The STATUS that the containers cause: that of the first that waits or has terminated."""
    ready = 0
    for status in reversed(pod.status.container_statuses):
        tally = tally.plus(status)
        state = status.state
        if state.waiting is not None and state.waiting.reason:
            phrase = state.waiting.reason
        elif state.terminated is not None:
            phrase = _ended(state)
        elif status.ready and state.running is not None:
            ready += 1
    if phrase == "Completed" and ready:
        phrase = "Running" if is_condition_true(pod.status.conditions, "Ready") else "NotReady"
    return phrase, ready, tally


def pod_row(pod: Pod, now: datetime) -> list[Any]:
    summary, gates = summarize(pod), pod.spec.readiness_gates
    met = sum(is_condition_true(pod.status.conditions, gate.condition_type) for gate in gates)
    return [
        pod.metadata.name,
        f"{summary.ready}/{summary.total}",
        summary.phrase,
        summary.restarts(now),
        age(pod.metadata.creation_timestamp, now),
        or_none(pod.status.pod_ip),
        or_none(pod.spec.node_name),
        or_none(pod.status.nominated_node_name),
        f"{met}/{len(gates)}" if gates else NONE,
    ]
