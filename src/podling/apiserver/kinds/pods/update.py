"""What an update of a pod itself may change.

Of the spec almost nothing: images (R-INIT-5), a shorter deadline, more tolerations, fewer scheduling gates,
and while there are gates, a narrower choice of nodes. Fields that are alpha in Kubernetes 1.36 are dropped if
their gate is off, unless the pod already has them. On create, AppArmor profiles given by annotation, as they
once were, become fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from podling.apiserver.rules import metadata
from podling.apiserver.rules.container.security import LOCAL, validate_app_armor
from podling.apiserver.rules.containers import containers_with_paths
from podling.apiserver.rules.field import difference, forbidden, invalid, required
from podling.apiserver.rules.pod.annotations import APP_ARMOR, validate_annotation_updates
from podling.apiserver.rules.scheduling import REQUIRED
from podling.model.errors import Cause
from podling.model.gates import Gates
from podling.model.types.container import AppArmorProfile, Container, Lifecycle, SecurityContext
from podling.model.types.pod import Affinity, NodeSelectorTerm, Pod, PodSpec, Toleration
from podling.model.types.pod_status import PodStatus, VolumeMountStatus


def drop_alpha_fields(new: PodSpec, old: PodSpec | None, gates: Gates) -> None:
    """Drop alpha fields from `new`. The gate `GenericWorkload` is always off, since nothing here schedules
    groups of pods."""
    if old is None or old.scheduling_group is None:
        new.scheduling_group = None
    if not gates.enabled("ContainerStopSignals") and (old is None or not _has_stop_signal(old)):
        _drop_stop_signals(new)


def drop_alpha_status(new: PodStatus, old: PodStatus) -> None:
    """Drop alpha fields from the status of `new`. The gates `ImageVolumeWithDigest` and
    `DRANodeAllocatableResources` are always off, since podling has neither. The stop signal of a container
    stays, as in Kubernetes."""
    if all(mount.volume_status is None for mount in _mounts(old)):
        for mount in _mounts(new):
            mount.volume_status = None
    if not old.node_allocatable_resource_claim_statuses:
        new.node_allocatable_resource_claim_statuses = []


def _mounts(status: PodStatus) -> Iterator[VolumeMountStatus]:
    for containers in (
        status.init_container_statuses,
        status.container_statuses,
        status.ephemeral_container_statuses,
    ):
        for container in containers:
            yield from container.volume_mounts


def _has_stop_signal(spec: PodSpec) -> bool:
    lifecycles = (container.lifecycle for container, _ in containers_with_paths(spec, ""))
    return any(lifecycle is not None and lifecycle.stop_signal is not None for lifecycle in lifecycles)


def _drop_stop_signals(spec: PodSpec) -> None:
    for container, _ in containers_with_paths(spec, ""):
        lifecycle = container.lifecycle
        if lifecycle is not None and lifecycle.stop_signal is not None:
            lifecycle.stop_signal = None
            container.lifecycle = lifecycle if lifecycle != Lifecycle() else None


_TYPES = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}


def adopt_app_armor_annotations(pod: Pod) -> None:
    """A field that is set wins; an annotation without a valid profile is left to validation."""
    if all(not key.startswith(APP_ARMOR) for key in pod.metadata.annotations):
        return
    if pod.spec.os is not None and pod.spec.os.name == "windows":
        return
    of_pod = pod.spec.security_context.app_armor_profile if pod.spec.security_context else None
    for container, _ in containers_with_paths(pod.spec, "spec"):
        context = container.security_context or SecurityContext()
        profile = _profile(pod.metadata.annotations.get(APP_ARMOR + container.name, ""))
        if profile is not None and profile != of_pod and context.app_armor_profile is None:
            container.security_context = msgspec.structs.replace(context, app_armor_profile=profile)


def _profile(annotation: str) -> AppArmorProfile | None:
    if annotation in _TYPES:
        return AppArmorProfile(type=_TYPES[annotation])
    if not annotation.startswith(LOCAL):
        return None
    profile = AppArmorProfile(type="Localhost", localhost_profile=annotation.removeprefix(LOCAL))
    return None if any(validate_app_armor(profile, "")) else profile


def validate_narrowing(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    if not old.node_selector.items() <= new.node_selector.items():
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", new.node_selector, why)
    before, after = _needed(old.affinity), _needed(new.affinity)
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if before and len(before) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(path, after, why)
        return
    for i, (term, earlier) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(term, earlier):
            yield invalid(f"{path}[{i}]", term, "only additions are allowed (no mutations or deletions)")


def _needed(affinity: Affinity | None) -> list[NodeSelectorTerm]:
    """The required node selector terms. One suffices, so an additional term would widen the choice."""
    node = affinity.node_affinity if affinity is not None else None
    needed = node.required_during_scheduling_ignored_during_execution if node is not None else None
    return needed.node_selector_terms if needed is not None else []


def _only_adds(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    """Whether a term only gained requirements. A term without any selects nothing, so adding to it would
    widen the choice."""
    if not old.match_expressions and not old.match_fields:
        return not new.match_expressions and not new.match_fields
    return (
        new.match_expressions[: len(old.match_expressions)] == old.match_expressions
        and new.match_fields[: len(old.match_fields)] == old.match_fields
    )


def with_node_affinity(new: Affinity | None, old: Affinity | None) -> Affinity | None:
    """The old affinity with the new node affinity; None if both are empty."""
    node = new.node_affinity if new is not None else None
    changed = msgspec.structs.replace(old or Affinity(), node_affinity=node)
    return None if new is None and changed == Affinity() else changed


MAX_SECONDS = (1 << 31) - 1

CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def validate_pod_update(new: Pod, old: Pod) -> list[Cause]:
    """All faults of an update. If a list of containers or the deadline is at fault, nothing after it is
    checked, as in Kubernetes."""
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
    """Refuse all other changes: compare `new` with `old` plus the changes that are allowed."""
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
