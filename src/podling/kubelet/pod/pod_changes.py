"""What a new object of a pod means to its worker. Pure."""

from __future__ import annotations

import msgspec

from podling.kubelet.container_types import all_containers
from podling.kubelet.reporting.conditions import EPHEMERAL_STARTED, OWNED, SCHEDULED
from podling.model.pod import Pod
from podling.model.pod_status import PodStatus

OWN_CONDITIONS = frozenset((*OWNED, EPHEMERAL_STARTED)) - {SCHEDULED}
"""PodScheduled is written by whoever schedules; the kubelet only says so where nobody did."""


def changed_images(old: Pod, new: Pod) -> set[str]:
    """The containers whose image is another now."""
    before = {container.name: container.image for _, container in all_containers(old)}
    return {
        container.name
        for _, container in all_containers(new)
        if before.get(container.name, container.image) != container.image
    }


def with_foreign_conditions(own: PodStatus, published: PodStatus) -> PodStatus:
    """The kubelet's newest status, with the conditions others own as the server has them."""
    kept = [c for c in own.conditions if c.type in OWN_CONDITIONS]
    foreign = [c for c in published.conditions if c.type not in OWN_CONDITIONS]
    return msgspec.structs.replace(own, conditions=kept + foreign)
