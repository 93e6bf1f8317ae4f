"""Which dead instances are let go (R-INIT-10). The newest of each container is always kept, for its log and
status; the one before it too, for `logs --previous` and lastState, except before a success of an init
container."""

from __future__ import annotations

from podling.kubelet.container_types import ContainerType, all_containers
from podling.kubelet.observed import ObservedContainer
from podling.kubelet.planning.draft import Draft
from podling.kubelet.pod_actions import RemoveContainer
from podling.model.pod import Pod


def remove_dead(draft: Draft, pod: Pod) -> None:
    """Init containers first: theirs are the logs least likely to be asked for."""
    for _, container in all_containers(pod):
        instances = draft.observed.instances(container.name)
        for old in instances[_kept(instances) :]:
            if old.exited:
                draft.add(RemoveContainer(old.id, old.name))


def _kept(instances: tuple[ObservedContainer, ...]) -> int:
    done = bool(instances) and instances[0].type is ContainerType.INIT and instances[0].succeeded
    return 1 if done else 2
