"""The phase of a pod, from the statuses of its containers. Ephemeral containers do not count (R-EPH-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from podling.kubelet.container_types import ContainerType, init_containers
from podling.kubelet.planning.ending import FAILED, SUCCEEDED
from podling.kubelet.planning.restart import policy_restarts
from podling.model.container import Container
from podling.model.pod import Pod
from podling.model.pod_status import ContainerStateTerminated, ContainerStatus

PENDING = "Pending"
RUNNING = "Running"


def pod_phase(pod: Pod, statuses: Mapping[str, ContainerStatus], *, over: bool, initialized: bool) -> str:
    """`statuses` by container name. `over`: nothing is started again; `initialized`: app containers have been
    made.
    """
    init = list(_init_states(pod, statuses))
    if "failed for good" in init:
        return FAILED
    sidecars = Counter(_sidecar_states(pod, statuses))
    apps = Counter(_app_state(pod, c, statuses[c.name], over) for c in pod.spec.containers)
    if "pending" in init or sidecars["waiting"] or apps["waiting"]:
        return PENDING
    if sidecars["starting"] and not initialized:
        return PENDING
    if apps["running"] or apps["restarting"] or sidecars["running"] or sidecars["starting"]:
        return RUNNING
    return FAILED if apps["failed"] else SUCCEEDED


def _init_states(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> Iterator[str]:
    for kind, container in init_containers(pod):
        if kind is ContainerType.SIDECAR:
            continue
        ended = _ended(statuses[container.name])
        if ended is None:
            yield "pending"
        elif ended.exit_code:
            again = policy_restarts(pod, container, kind, ended.exit_code)
            yield "failed" if again else "failed for good"


def _sidecar_states(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> Iterator[str]:
    for kind, container in init_containers(pod):
        if kind is not ContainerType.SIDECAR:
            continue
        status = statuses[container.name]
        if status.state.running:
            yield "running" if status.started else "starting"
        elif _ended(status) is None:
            yield "waiting"


def _app_state(pod: Pod, container: Container, status: ContainerStatus, over: bool) -> str:
    if status.state.running:
        return "running"
    ended = _ended(status)
    if ended is None:
        return "waiting"
    if not over and policy_restarts(pod, container, ContainerType.REGULAR, ended.exit_code):
        return "restarting"
    return "failed" if ended.exit_code else "succeeded"


def _ended(status: ContainerStatus) -> ContainerStateTerminated | None:
    """How it ended, now or before what it now waits for."""
    return status.state.terminated or (status.last_state.terminated if not status.state.running else None)
