"""Which containers of a pod have terminated for good, by their statuses.

The API server refuses a status update that makes such a container run again, and the kubelet writes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podling.model.types.pod import PodSpec
from podling.model.types.pod_status import ContainerStatus


def ended_for_good(
    statuses: Sequence[ContainerStatus], spec: PodSpec, *, ephemeral: bool
) -> Iterator[tuple[int, ContainerStatus]]:
    """(index, status) of each status whose container will not be restarted. Ephemeral containers never
    are."""
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
    """Names of the containers that may be restarted, by policy or restart rules; None means all of them."""
    containers = (*spec.init_containers, *spec.containers)
    rules = (rule for container in containers for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        return None
    return frozenset(container.name for container in containers if container.restart_policy is not None)
