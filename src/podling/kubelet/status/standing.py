"""Keeps those parts of a pod's status that are not the kubelet's to change: what the API server does not
allow, and the conditions of other writers. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from podling.kubelet.status.conditions import is_own
from podling.model.rules.ended_containers import ended_for_good
from podling.model.types.pod import PodSpec
from podling.model.types.pod_status import ContainerStatus, PodCondition, PodStatus


def with_standing(spec: PodSpec, old: PodStatus, new: PodStatus) -> PodStatus:
    """`new` as it may follow `old`, which the server has.

    A container that has ended for good is shown so, also while it runs once more in another sandbox
    (R-INIT-4), until that instance has ended as well. Conditions that are not the kubelet's, such as
    readiness gates, are those of `old`: `new` may have been made before their owners last wrote them.
    """
    made = {s.name: s.container_id for s in new.ephemeral_container_statuses if s.container_id}
    # Where a name may be used again an entry that has an instance of its own is another one (R-DBG-1).
    debug = [
        s for s in old.ephemeral_container_statuses if made.get(s.name, s.container_id) == s.container_id
    ]
    return replace(
        new,
        conditions=_conditions(old.conditions, new.conditions),
        init_container_statuses=_kept(spec, old.init_container_statuses, new.init_container_statuses),
        container_statuses=_kept(spec, old.container_statuses, new.container_statuses),
        ephemeral_container_statuses=_kept(spec, debug, new.ephemeral_container_statuses, ephemeral=True),
    )


def _conditions(old: list[PodCondition], new: list[PodCondition]) -> list[PodCondition]:
    own = [condition for condition in new if is_own(condition)]
    types = {condition.type for condition in own}
    return [*(c for c in old if not is_own(c) and c.type not in types), *own]


def _kept(
    spec: PodSpec, old: list[ContainerStatus], new: list[ContainerStatus], *, ephemeral: bool = False
) -> list[ContainerStatus]:
    ended = {status.name: status for _, status in ended_for_good(old, spec, ephemeral=ephemeral)}
    return [status if status.state.terminated else ended.get(status.name, status) for status in new]
