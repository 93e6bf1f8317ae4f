"""What the phase, conditions and annotations of an object say, for all parts that ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import ContainerStatus

TERMINAL = frozenset(("Succeeded", "Failed"))
"""Phases in which no container of the pod runs or will run again."""
MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a mirror pod: the API object that a kubelet creates for a static pod."""


class AnyCondition(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...


def is_terminal(pod: Pod) -> bool:
    return pod.status.phase in TERMINAL


def is_mirror(pod: Pod) -> bool:
    return MIRROR in pod.metadata.annotations


def is_condition_true(conditions: Iterable[AnyCondition], type: str) -> bool:
    """False, too, when there is no condition of this type."""
    return any(c.type == type and c.status == "True" for c in conditions)


def ended_for_good(
    statuses: Sequence[ContainerStatus], spec: PodSpec, *, ephemeral: bool
) -> Iterator[tuple[int, ContainerStatus]]:
    """(index, status) of each status whose container has terminated and will not be restarted. Ephemeral
    containers never are. The API server refuses a status update that makes such a container run again, and
    the kubelet writes none."""
    containers = (*spec.init_containers, *spec.containers)
    rules = (rule for container in containers for rule in container.restart_policy_rules)
    if not ephemeral and any(rule.action == "RestartAllContainers" for rule in rules):
        return
    again = {container.name for container in containers if container.restart_policy is not None}
    for i, status in enumerate(statuses):
        ended = status.state.terminated
        if ended is None:
            continue
        policy = spec.restart_policy
        by_policy = policy == "Always" or (policy == "OnFailure" and ended.exit_code)
        if ephemeral or not (by_policy or status.name in again):
            yield i, status
