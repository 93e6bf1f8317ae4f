"""Stopping what runs of a pod, in order: everything but sidecars at once, then sidecars one by one from the
last to the first, then the sandboxes (R-INIT-6). preStop hooks do not wait for their container's turn: all of
them begin at once.

Used for every reason a pod or its sandbox ends. Each step is planned once the one before it is seen to be
done.
"""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.container_types import ContainerType, all_containers
from podling.kubelet.observed import ObservedContainer
from podling.kubelet.planning.draft import Draft
from podling.kubelet.planning.ending import MINIMUM_GRACE, Ending
from podling.kubelet.pod_actions import PreStop, StopContainer, StopSandbox
from podling.model.pod import Pod


def tear_down(draft: Draft, pod: Pod, end: Ending) -> bool:
    """Whether everything has stopped. Plans the next step otherwise."""
    alive = [c for c in draft.observed.containers if c.alive]
    turn = _turn(pod, alive)
    for container in alive:
        if container in turn:
            draft.add(_stop(container, end, draft.now))
        elif _has_pre_stop(pod, container) and container.id not in draft.observed.pre_stopped:
            draft.add(PreStop(container.id, container.name, end.grace_seconds))
    if not alive and not draft.in_flight(("start:", "create-sandbox")):
        for sandbox in draft.observed.sandboxes:
            if not sandbox.stopped:
                draft.add(StopSandbox(sandbox.id))
    return not alive and draft.quiet


def _turn(pod: Pod, alive: list[ObservedContainer]) -> list[ObservedContainer]:
    """The containers whose turn it is to be stopped."""
    others = [c for c in alive if c.type is not ContainerType.SIDECAR]
    if others or not alive:
        return others
    order = {c.name: index for index, c in enumerate(pod.spec.init_containers)}
    last = max(order.get(c.name, -1) for c in alive)
    return [c for c in alive if order.get(c.name, -1) == last]


def _has_pre_stop(pod: Pod, container: ObservedContainer) -> bool:
    return any(
        spec.lifecycle is not None and spec.lifecycle.pre_stop is not None
        for _, spec in all_containers(pod)
        if spec.name == container.name
    )


def _stop(container: ObservedContainer, end: Ending, now: datetime) -> StopContainer:
    grace = end.grace_seconds
    if container.type is ContainerType.SIDECAR and end.due:
        # The app containers had the grace first; a sidecar gets what they left of it.
        grace = min(grace, int((end.due - now).total_seconds()))
    return StopContainer(
        container.id,
        container.name,
        grace_seconds=max(grace, MINIMUM_GRACE),
        reason="Terminating",
        message=f"Stopping container {container.name}",
        pod_grace=end.grace_seconds,
    )
