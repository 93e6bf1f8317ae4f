"""What a new object of a pod, or the loss of an instance, means to its worker. Pure."""

from __future__ import annotations

import msgspec

from podling.kubelet.container_types import all_containers
from podling.kubelet.reporting.conditions import EPHEMERAL_STARTED, OWNED, SCHEDULED
from podling.model.pod import Pod
from podling.model.pod_status import PodStatus

OWN_CONDITIONS = frozenset((*OWNED, EPHEMERAL_STARTED)) - {SCHEDULED}
"""PodScheduled is written by whoever schedules; the kubelet only says so where nobody did."""


def changed_images(old: Pod, new: Pod) -> set[str]:
    """The containers that are gone, or whose image is another now."""
    now = {container.name: container.image for _, container in all_containers(new)}
    return {
        container.name for _, container in all_containers(old) if now.get(container.name) != container.image
    }


def is_echo(old: Pod, new: Pod) -> bool:
    """Whether the new object says nothing that the old one did not, status apart: most news of a pod is what
    its kubelet wrote."""
    known, told = old.metadata, new.metadata
    if known.resource_version != told.resource_version:
        known = msgspec.structs.replace(
            known, resource_version=told.resource_version, managed_fields=told.managed_fields
        )
    return known == told and old.spec == new.spec


def container_names(pod: Pod) -> frozenset[str]:
    return frozenset(container.name for _, container in all_containers(pod))


def with_foreign_conditions(own: PodStatus, published: PodStatus) -> PodStatus:
    """The kubelet's newest status, with what is not its own as the server has it."""
    kept = [c for c in own.conditions if c.type in OWN_CONDITIONS]
    foreign = [c for c in published.conditions if c.type not in OWN_CONDITIONS]
    return msgspec.structs.replace(
        own, conditions=kept + foreign, debug_container_statuses=published.debug_container_statuses
    )


def without_instance(status: PodStatus, container_id: str) -> PodStatus:
    """An ephemeral container that was let go leaves its name to the next entry, which has yet to start
    (R-EPH-11).
    """
    shown = status.ephemeral_container_statuses
    kept = [c for c in shown if c.container_id.rpartition("/")[2] != container_id]
    return (
        status
        if len(kept) == len(shown)
        else msgspec.structs.replace(status, ephemeral_container_statuses=kept)
    )
