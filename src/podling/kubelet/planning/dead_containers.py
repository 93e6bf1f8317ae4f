"""Which dead instances are let go (R-INIT-10). Of each container the newest dead one is kept, as by
Kubernetes' kubelet: for its log and status when nothing of that name runs, for `logs --previous` and
lastState when something does. A node short of disk keeps none of a pod that is over."""

from __future__ import annotations

from podling.kubelet.container_types import all_containers
from podling.kubelet.planning.draft import Draft
from podling.kubelet.pod_actions import RemoveContainer, RemoveSandbox
from podling.model.pod import Pod


def remove_dead(draft: Draft, pod: Pod) -> None:
    """Init containers first: theirs are the logs least likely to be asked for."""
    for _, container in all_containers(pod):
        dead = [instance for instance in draft.observed.instances(container.name) if instance.exited]
        for old in dead[1:]:
            draft.add(RemoveContainer(old.id, old.name))


def remove_all_dead(draft: Draft) -> None:
    """One by one, because a container's log goes with it."""
    for container in draft.observed.containers:
        draft.add(RemoveContainer(container.id, container.name))
    if not draft.observed.containers:
        for sandbox in draft.observed.sandboxes:
            draft.add(RemoveSandbox(sandbox.id))
