"""What the phase, conditions and annotations of an object say, for all parts that ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from podling.model.rules.resources import volume_containers
from podling.model.types.container import Container, ContainerRestartRule
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import ContainerStatus, PodCondition

TERMINAL = frozenset(("Succeeded", "Failed"))
"""Phases in which no container of the pod runs or will run again."""
RESTART, RESTART_ALL = "Restart", "RestartAllContainers"
"""What a rule of a container does."""
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


def with_condition(conditions: Sequence[PodCondition], new: PodCondition) -> list[PodCondition]:
    """The conditions with `new` in place of the one of its type, whose transition it keeps if it says the
    same."""
    for i, old in enumerate(conditions):
        if old.type == new.type:
            if old.status == new.status:
                new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
            return [*conditions[:i], new, *conditions[i + 1 :]]
    return [*conditions, new]


def ended_for_good(
    statuses: Sequence[ContainerStatus], spec: PodSpec, *, ephemeral: bool
) -> Iterator[tuple[int, ContainerStatus]]:
    """(index, status) of each status whose container has terminated and will not be restarted. Ephemeral
    containers never are, nor is what the pod does not have. The API server refuses a status update that makes
    such a container run again, and the kubelet writes none."""
    containers = (*volume_containers(spec), *spec.init_containers, *spec.containers)
    rules = (rule for container in containers for rule in container.restart_policy_rules)
    if not ephemeral and any(rule.action == RESTART_ALL for rule in rules):
        return
    known = {} if ephemeral else {container.name: container for container in containers}
    for i, status in enumerate(statuses):
        ended = status.state.terminated
        if ended is None:
            continue
        container = known.get(status.name)
        if container is None or not _is_restarted(container, spec.restart_policy, ended.exit_code):
            yield i, status


def _is_restarted(container: Container, restart_policy: str, code: int) -> bool:
    """`restart_policy`: the pod's, where the container has none."""
    policy = container.restart_policy or restart_policy
    if policy == "Always" or (policy == "OnFailure" and code):
        return True
    return any(rule_matches(rule, code) for rule in container.restart_policy_rules)


def rule_matches(rule: ContainerRestartRule, code: int) -> bool:
    """Whether an exit with `code` is one of those that the rule restarts."""
    if rule.exit_codes is None or rule.action not in (RESTART, RESTART_ALL):
        return False
    listed = code in rule.exit_codes.values
    return listed if rule.exit_codes.operator == "In" else not listed
