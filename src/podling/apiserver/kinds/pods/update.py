"""What an update of a pod may change.

Of the spec almost nothing: images (R-INIT-5), a shorter deadline, more tolerations, fewer scheduling gates,
and while there are gates, a narrower choice of nodes. Fields that are alpha in Kubernetes 1.36 are dropped if
their gate is off, unless the pod already has them. On create, AppArmor profiles given by annotation, as they
once were, become fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from podling.apiserver.rules import metadata
from podling.apiserver.rules.container.security import LOCAL, validate_app_armor
from podling.apiserver.rules.field import (
    containers_with_paths,
    difference,
    forbidden,
    internal,
    invalid,
    required,
)
from podling.apiserver.rules.pod.annotations import APP_ARMOR, validate_annotation_updates
from podling.apiserver.rules.scheduling import REQUIRED
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.gates import Gates
from podling.model.types.container import (
    AppArmorProfile,
    Container,
    EphemeralContainerCommon,
    Lifecycle,
    SecurityContext,
)
from podling.model.types.pod import Affinity, NodeSelectorTerm, Pod, PodSpec, Toleration
from podling.model.types.volume import VolumeProjection

_TYPES = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}

MAX_SECONDS = (1 << 31) - 1

CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def drop_alpha_fields(new: PodSpec, old: PodSpec | None, gates: Gates) -> None:
    """Drop from `new` the fields whose gates are off in Kubernetes, unless `old` has such. Most are always
    off, since nothing here acts on them: `GenericWorkload`, `ClusterTrustBundleProjection` and
    `PodCertificateRequest`."""
    if old is None or old.scheduling_group is None:
        new.scheduling_group = None
    for attribute in ("cluster_trust_bundle", "pod_certificate"):
        if old is None or all(getattr(source, attribute) is None for source in _projections(old)):
            for source in _projections(new):
                setattr(source, attribute, None)
    if gates.enabled("ContainerStopSignals") or (old is not None and any(_stop_signals(old))):
        return
    for container, lifecycle in _stop_signals(new):
        lifecycle.stop_signal = None
        container.lifecycle = lifecycle if lifecycle != Lifecycle() else None


def _projections(spec: PodSpec) -> Iterator[VolumeProjection]:
    for volume in spec.volumes:
        yield from volume.projected.sources if volume.projected is not None else ()


def _stop_signals(spec: PodSpec) -> Iterator[tuple[EphemeralContainerCommon, Lifecycle]]:
    """Each container with a stop signal, and what has it."""
    for container, _ in containers_with_paths(spec, ""):
        if container.lifecycle is not None and container.lifecycle.stop_signal is not None:
            yield container, container.lifecycle


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
        shown = new.node_selector if "nodeSelector" in told_empty(new) else internal(new.node_selector)
        yield invalid("spec.nodeSelector", shown, why)
    before, after = _needed(old.affinity), _needed(new.affinity)
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if before and len(before) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(path, internal(after), why)
        return
    for i, (term, earlier) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(term, earlier):
            why = "only additions are allowed (no mutations or deletions)"
            yield invalid(f"{path}[{i}]", internal(term), why)


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
    """What `new` must be if nothing but the node affinity may change."""
    before = old.node_affinity if old is not None else None
    after = new.node_affinity if new is not None else None
    if before == after:
        return old
    if new is None:
        return None if old == Affinity(node_affinity=before) else old
    return msgspec.structs.replace(old or Affinity(), node_affinity=after)


def validate_pod_update(new: Pod, old: Pod) -> list[Cause]:
    """All faults of an update. If a list of containers or the deadline is at fault, nothing after it is
    checked, as in Kubernetes."""
    ours, theirs = new.metadata, old.metadata
    causes = metadata.validate_update(ours, theirs)
    causes += validate_annotation_updates(ours.annotations, theirs.annotations, "metadata.annotations")
    for attribute, wire in (("containers", "containers"), ("init_containers", "initContainers")):
        after, before = getattr(new.spec, attribute), getattr(old.spec, attribute)
        if len(after) != len(before):
            return [*causes, forbidden(f"spec.{wire}", "pod updates may not add or remove containers")]
        causes += [
            required(f"spec.{wire}[{i}].image") for i, container in enumerate(after) if not container.image
        ]
    ends, ended = new.spec.active_deadline_seconds, old.spec.active_deadline_seconds
    path = "spec.activeDeadlineSeconds"
    if ends is not None and not 0 <= ends <= MAX_SECONDS:
        return [*causes, invalid(path, ends, f"must be between 0 and {MAX_SECONDS}, inclusive")]
    if ends is not None and ended is not None and ended < ends:
        return [*causes, invalid(path, ends, "must be less than or equal to previous value")]
    if ends is None and ended is not None:
        causes.append(invalid(path, None, "must not update from a positive integer to nil value"))
    kept = set(map(_without_seconds, new.spec.tolerations))
    if any(_without_seconds(toleration) not in kept for toleration in old.spec.tolerations):
        why = "existing toleration can not be modified except its tolerationSeconds"
        causes.append(forbidden("spec.tolerations", why))
    known = {gate.name for gate in old.spec.scheduling_gates}
    # Of gates of one name Kubernetes tells the last.
    for name, i in {gate.name: i for i, gate in enumerate(new.spec.scheduling_gates)}.items():
        if name not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{name}'"
            causes.append(forbidden(f"spec.schedulingGates[{i}].name", why))
    return [*causes, *_validate_rest(new.spec, old.spec)]


def _without_seconds(toleration: Toleration) -> tuple[object, ...]:
    return msgspec.structs.astuple(msgspec.structs.replace(toleration, toleration_seconds=None))


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
