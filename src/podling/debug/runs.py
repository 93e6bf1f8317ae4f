"""Which run of a container a pod tells of, and whether there will be another: whose log there is to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from podling.debug.container import WishError, all_containers, status_of
from podling.debug.progress import FINISHED
from podling.model.types.pod import Pod


class Run(NamedTuple):
    """The newest run of a container; `id` is empty before the first. `is_last`: no other will come."""

    id: str = ""
    number: int = 0
    is_over: bool = False
    is_last: bool = False


def newest_run(pod: Pod, name: str) -> Run:
    status = status_of(pod, name)
    is_finished = pod.status.phase in FINISHED
    if status is None or not status.container_id:
        return Run(is_last=is_finished)
    is_over = status.state.running is None
    ended = status.state.terminated
    leaves = is_finished or (is_over and bool(pod.metadata.deletion_timestamp))
    may_run_again = _is_restarted(pod, name, failed=ended is None or ended.exit_code != 0)
    return Run(
        status.container_id,
        status.restart_count,
        is_over,
        leaves or (ended is not None and not may_run_again),
    )


def _is_restarted(pod: Pod, name: str, *, failed: bool) -> bool:
    if any(one.name == name for one in pod.spec.ephemeral_containers):
        return False
    steps = {one.name: one for one in pod.spec.init_containers}
    found = steps.get(name) or next(one for one in pod.spec.containers if one.name == name)
    policy = found.restart_policy or pod.spec.restart_policy
    if found.restart_policy_rules and failed:
        return True
    if name in steps and found.restart_policy is None:
        return failed and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and failed)


def chosen(pod: Pod, names: Sequence[str]) -> list[str]:
    """The containers whose logs are asked for, in the order in which they start: all, or those of `names`
    that the pod has."""
    there = [container.name for container in all_containers(pod)]
    return [name for name in there if not names or name in names]


def check_chosen(pods: Sequence[Pod], names: Sequence[str]) -> None:
    """Raises WishError for a container that none of the pods has."""
    there = {name: None for pod in pods for name in chosen(pod, ())}
    for name in names:
        if pods and name not in there:
            of = "pod " + pods[0].metadata.name if len(pods) == 1 else "none of the pods"
            has = "has no" if len(pods) == 1 else "has a"
            raise WishError(f"{of} {has} container {name}: there are {', '.join(there)}")


def steps_before(pod: Pod, name: str) -> list[str]:
    """The init containers that end before this one begins."""
    steps = [one for one in pod.spec.init_containers if one.restart_policy is None]
    names = [one.name for one in pod.spec.init_containers]
    if name in names:
        return [one.name for one in steps if names.index(one.name) < names.index(name)]
    return [one.name for one in steps]
