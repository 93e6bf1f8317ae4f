"""What of a pod may change once it exists, by an update of the pod itself.

Almost nothing of a spec may: images (R-INIT-5), a shorter deadline, more tolerations, fewer scheduling gates,
and while there are any of those, a narrower choice of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from podling.apiserver.registry import metadata
from podling.apiserver.registry.difference import difference
from podling.apiserver.registry.field import forbidden, invalid, required
from podling.apiserver.registry.pod.annotations import validate_annotation_updates
from podling.apiserver.registry.pod.narrowing import validate_narrowing, with_node_affinity
from podling.model.container import Container
from podling.model.errors import Cause
from podling.model.pod import Pod, PodSpec
from podling.model.scheduling import Toleration

MAX_SECONDS = (1 << 31) - 1

CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def validate_pod_update(new: Pod, old: Pod) -> list[Cause]:
    """Where a list of containers or the deadline is wrong, nothing after it is looked at."""
    ours, theirs = new.metadata, old.metadata
    causes = metadata.validate_update(ours, theirs)
    causes += validate_annotation_updates(ours.annotations, theirs.annotations, "metadata.annotations")
    for attribute, wire in (("containers", "containers"), ("init_containers", "initContainers")):
        after, before = getattr(new.spec, attribute), getattr(old.spec, attribute)
        causes += _validate_images(after, f"spec.{wire}")
        if len(after) != len(before):
            return [*causes, forbidden(f"spec.{wire}", "pod updates may not add or remove containers")]
    deadline = list(_validate_deadline(new.spec.active_deadline_seconds, old.spec.active_deadline_seconds))
    if deadline and new.spec.active_deadline_seconds is not None:
        return causes + deadline
    return [
        *causes,
        *deadline,
        *_validate_tolerations(new.spec.tolerations, old.spec.tolerations),
        *_validate_gates(new.spec, old.spec),
        *_validate_rest(new.spec, old.spec),
    ]


def _validate_images(containers: Sequence[Container], path: str) -> Iterator[Cause]:
    for i, container in enumerate(containers):
        if not container.image:
            yield required(f"{path}[{i}].image")


def _validate_deadline(new: int | None, old: int | None) -> Iterator[Cause]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= MAX_SECONDS:
        yield invalid(path, new, f"must be between 0 and {MAX_SECONDS}, inclusive")
    elif old is not None and old < new:
        yield invalid(path, new, "must be less than or equal to previous value")


def _validate_tolerations(new: list[Toleration], old: list[Toleration]) -> Iterator[Cause]:
    kept = set(map(_without_seconds, new))
    if any(_without_seconds(toleration) not in kept for toleration in old):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", why)


def _without_seconds(toleration: Toleration) -> tuple[object, ...]:
    return msgspec.structs.astuple(msgspec.structs.replace(toleration, toleration_seconds=None))


def _validate_gates(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    known = {gate.name for gate in old.scheduling_gates}
    for i, gate in enumerate(new.scheduling_gates):
        if gate.name not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.name}'"
            yield forbidden(f"spec.schedulingGates[{i}].name", why)


def _validate_rest(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    """Compares with what `new` would be had it changed only what it may."""
    if new == old:
        return
    if old.scheduling_gates:
        yield from validate_narrowing(new, old)
    allowed = _with_allowed_changes(new, old)
    if new != allowed:
        changes = difference(allowed, new, "spec")
        yield forbidden(
            "spec", f"pod updates may not change fields other than {','.join(CHANGEABLE)}\n{changes}"
        )


def _with_allowed_changes(new: PodSpec, old: PodSpec) -> PodSpec:
    grace = old.termination_grace_period_seconds
    if grace is not None and grace < 0 and new.termination_grace_period_seconds == 1:
        grace = 1
    allowed: dict[str, Any] = {
        "containers": _with_images(new.containers, old.containers),
        "init_containers": _with_images(new.init_containers, old.init_containers),
        "active_deadline_seconds": new.active_deadline_seconds,
        "tolerations": new.tolerations,
        "scheduling_gates": new.scheduling_gates,
        "termination_grace_period_seconds": grace,
    }
    if old.scheduling_gates:
        allowed["node_selector"] = new.node_selector
        allowed["affinity"] = with_node_affinity(new.affinity, old.affinity)
    return msgspec.structs.replace(old, **allowed)


def _with_images(new: list[Container], old: list[Container]) -> list[Container]:
    pairs = zip(new, old, strict=True)
    return [msgspec.structs.replace(before, image=after.image) for after, before in pairs]
