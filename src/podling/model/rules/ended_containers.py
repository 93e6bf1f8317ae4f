"""Which containers of a pod have ended for good, by their statuses: they are never shown otherwise again.

The API server refuses a status that takes such an end back, and the kubelet makes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podling.model.types.pod import PodSpec
from podling.model.types.pod_status import ContainerStatus


def ended_for_good(
    statuses: Sequence[ContainerStatus], spec: PodSpec, *, ephemeral: bool
) -> Iterator[tuple[int, ContainerStatus]]:
    """Each with its index. An ephemeral container always ends for good."""
    again = _restarted(spec)
    for i, status in enumerate(statuses):
        ended = status.state.terminated
        if ended is None:
            continue
        policy = spec.restart_policy
        by_policy = policy == "Always" or (policy == "OnFailure" and ended.exit_code)
        if ephemeral or not (by_policy or again is None or status.name in again):
            yield i, status


def _restarted(spec: PodSpec) -> frozenset[str] | None:
    """The names of containers that may be started again whatever the pod's policy says; None for all."""
    containers = (*spec.init_containers, *spec.containers)
    rules = (rule for container in containers for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        return None
    return frozenset(container.name for container in containers if container.restart_policy is not None)
