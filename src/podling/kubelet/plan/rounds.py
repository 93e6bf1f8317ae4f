"""RestartAllContainers: the restart generation ("round") of a pod. Pure.

A container that exits as one of its rules says ends the round of its pod. The next round begins at the first
init container, in the same sandbox. The id of a round is the id of the container whose exit triggered it; the
first round of a sandbox has the id "". Every instance is annotated with the round it was made in, so the
current round can be read from the runtime alone (R-INIT-11). Ephemeral containers take no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from podling.kubelet.plan.draft import Draft
from podling.kubelet.plan.restart import RESTART_ALL, rule_matches
from podling.kubelet.pod.actions import StopContainer
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod
from podling.model.types.container import Container
from podling.model.types.pod import Pod


def in_round(pod: Pod, observed: ObservedPod) -> ObservedPod:
    """`observed` with the id of the current round. Returns at once for a pod without such rules."""
    rules = {container.name: container for container in _with_rule(pod)}
    if not rules:
        return observed
    made = list(_of_sandbox(observed))
    if not made:
        return observed
    # An exit triggers one restart: exits of earlier rounds do not count.
    now = made[0].round
    ends = [c for c in made if c.round == now and c.exited and _ends_round(rules.get(c.name), c)]
    return replace(observed, round=max(ends, key=_finished).id if ends else now)


def end_earlier_round(draft: Draft, pod: Pod) -> bool:
    """Plan the stop of containers of an earlier round, without grace. True while any is
    left or being started."""
    observed = draft.observed
    left = [c for c in _of_sandbox(observed) if c.alive and observed.outdated(c)]
    for container in left:
        draft.add(
            StopContainer(
                container.id,
                container.name,
                grace_seconds=0,
                reason="RestartAllContainers",
                message=f"Stopping container {container.name}",
                restart=True,
            )
        )
    # While no instance of this round exists, a start in flight was planned in an earlier round.
    begun = any(not observed.outdated(c) for c in _of_sandbox(observed))
    starting = any(draft.starting(c.name) for c in (*pod.spec.init_containers, *pod.spec.containers))
    return bool(left) or (bool(observed.round) and not begun and starting)


def ender(observed: ObservedPod) -> ObservedContainer | None:
    """The instance whose exit triggered this round, while containers of the earlier one still run."""
    if not any(c.alive and observed.outdated(c) for c in _of_sandbox(observed)):
        return None
    return next((c for c in observed.containers if c.id == observed.round), None)


def _with_rule(pod: Pod) -> Iterator[Container]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(rule.action == RESTART_ALL for rule in container.restart_policy_rules):
            yield container


def _of_sandbox(observed: ObservedPod) -> Iterator[ObservedContainer]:
    """Newest first."""
    for container in observed.containers:
        if container.type is not ContainerType.EPHEMERAL and observed.in_sandbox(container):
            yield container


def _ends_round(container: Container | None, ended: ObservedContainer) -> bool:
    return container is not None and any(
        rule.action == RESTART_ALL and rule_matches(rule, ended.exit_code)
        for rule in container.restart_policy_rules
    )


def _finished(container: ObservedContainer) -> tuple[datetime, str]:
    return container.finished_at, container.id
