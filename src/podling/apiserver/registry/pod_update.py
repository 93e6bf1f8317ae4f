"""What of a pod may change once it exists: by an update of the pod, and by one of its status.

Almost nothing of a spec may: images (R-INIT-5), a shorter deadline, more tolerations, fewer scheduling gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from podling.apiserver.registry import metadata
from podling.apiserver.registry.difference import difference
from podling.apiserver.registry.field import IMMUTABLE, forbidden, invalid, required
from podling.model.container import Container
from podling.model.errors import Cause
from podling.model.pod import Pod, PodSpec
from podling.model.pod_status import ContainerStatus
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
    causes = metadata.validate_update(new.metadata, old.metadata)
    lists = [
        *_validate_list(new.spec.containers, old.spec.containers, "spec.containers"),
        *_validate_list(new.spec.init_containers, old.spec.init_containers, "spec.initContainers"),
    ]
    if lists:
        return causes + lists
    causes += _validate_deadline(new.spec.active_deadline_seconds, old.spec.active_deadline_seconds)
    causes += _validate_tolerations(new.spec.tolerations, old.spec.tolerations)
    causes += _validate_gates(new.spec, old.spec)
    causes += _validate_rest(new.spec, old.spec)
    return causes


def _validate_list(new: Sequence[Container], old: Sequence[Container], path: str) -> Iterator[Cause]:
    if len(new) != len(old):
        yield forbidden(path, "pod updates may not add or remove containers")
        return
    for i, container in enumerate(new):
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
    kept = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in kept for toleration in old):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", why)


def _without_seconds(toleration: Toleration) -> Toleration:
    return msgspec.structs.replace(toleration, toleration_seconds=None)


def _validate_gates(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    for gate in new.scheduling_gates:
        if gate not in old.scheduling_gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.name}'"
            yield forbidden("spec.schedulingGates", why)


def _validate_rest(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    """Compares with what `new` would be had it changed only what it may."""
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
        allowed["node_selector"] = {**new.node_selector, **old.node_selector}
    return msgspec.structs.replace(old, **allowed)


def _with_images(new: list[Container], old: list[Container]) -> list[Container]:
    pairs = zip(new, old, strict=True)
    return [msgspec.structs.replace(before, image=after.image) for after, before in pairs]


def validate_status_update(new: Pod, old: Pod) -> list[Cause]:
    causes = metadata.validate_update(new.metadata, old.metadata)
    if new.status.qos_class != old.status.qos_class:
        causes.append(invalid("status.qosClass", new.status.qos_class, IMMUTABLE))
    for attribute, wire in (
        ("container_statuses", "containerStatuses"),
        ("init_container_statuses", "initContainerStatuses"),
    ):
        causes += _validate_transitions(
            getattr(new.status, attribute), getattr(old.status, attribute), f"status.{wire}", old.spec
        )
    return causes


def _validate_transitions(
    new: list[ContainerStatus], old: list[ContainerStatus], path: str, spec: PodSpec
) -> Iterator[Cause]:
    """A container that ended for good does not come back."""
    if spec.restart_policy == "Always":
        return
    restartable = {
        container.name
        for container in (*spec.init_containers, *spec.containers)
        if container.restart_policy is not None
    }
    states = {status.name: status.state for status in new}
    for i, status in enumerate(old):
        ended = status.state.terminated
        if ended is None or status.name in restartable or status.name not in states:
            continue
        if ended.exit_code != 0 and spec.restart_policy == "OnFailure":
            continue
        if states[status.name].terminated is None:
            yield forbidden(f"{path}[{i}].state", "may not be transitioned to non-terminated state")
