"""What an update of a pod, and of its subresource `status`, may change.

Of the spec almost nothing: images (R-INIT-5), a shorter deadline, more tolerations, fewer scheduling gates,
and while there are gates, a narrower choice of nodes. Fields that are alpha in Kubernetes 1.36 are dropped if
their gate is off, unless the pod already has them. On create, AppArmor profiles given by annotation, as they
once were, become fields.

Of the status, what cannot be taken back is kept, such as an exit code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from podling.apiserver.kinds.kind import Part
from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import parsed_loosely, validate_ip
from podling.apiserver.rules.container.security import LOCAL, validate_app_armor, validate_id
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    containers_with_paths,
    difference,
    duplicate,
    forbidden,
    invalid,
    required,
)
from podling.apiserver.rules.pod.annotations import APP_ARMOR, validate_annotation_updates
from podling.apiserver.rules.scheduling import REQUIRED
from podling.model import names
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.status import ended_for_good
from podling.model.types.container import (
    AppArmorProfile,
    Container,
    EphemeralContainerCommon,
    Lifecycle,
    SecurityContext,
)
from podling.model.types.pod import Affinity, NodeSelectorTerm, Pod, PodSpec, Toleration
from podling.model.types.pod_status import HostIP, PodIP, PodStatus, VolumeMountStatus
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

SYSTEM_CONDITIONS = frozenset(("PodScheduled", "Ready", "Initialized"))
_LISTS = (
    ("container_statuses", "containerStatuses"),
    ("init_container_statuses", "initContainerStatuses"),
    ("ephemeral_container_statuses", "ephemeralContainerStatuses"),
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


def validate_pod_update(new: Pod, old: Pod) -> list[Cause]:
    """All faults of an update. If a list of containers or the deadline is at fault, nothing after it is
    checked, as in Kubernetes."""
    ours, theirs = new.metadata, old.metadata
    causes = metadata.validate_update(ours, theirs)
    causes += validate_annotation_updates(ours.annotations, theirs.annotations, "metadata.annotations")
    for attribute, wire in (("containers", "containers"), ("init_containers", "initContainers")):
        after, before = getattr(new.spec, attribute), getattr(old.spec, attribute)
        causes += [
            required(f"spec.{wire}[{i}].image") for i, container in enumerate(after) if not container.image
        ]
        if len(after) != len(before):
            return [*causes, forbidden(f"spec.{wire}", "pod updates may not add or remove containers")]
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
    for i, gate in enumerate(new.spec.scheduling_gates):
        if gate.name not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.name}'"
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


class PodStatusPart(Part[Pod]):
    name = "status"

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._shows_debug = gates.enabled("DebugSubresource")

    def prepare_update(self, new: Pod, old: Pod) -> None:
        shown = new.status.ephemeral_container_statuses if self._shows_debug else []
        new.status.debug_container_statuses = shown
        new.spec = old.spec
        new.metadata.owner_references = old.metadata.owner_references
        new.status.qos_class = new.status.qos_class or old.status.qos_class
        _keep_observed_generations(new.status, old.status)
        drop_alpha_status(new.status, old.status)

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        ours, theirs = new.status, old.status
        causes = super().validate_update(new, old)
        causes += validate_annotation_updates(
            new.metadata.annotations, old.metadata.annotations, "metadata.annotations"
        )
        for i, condition in enumerate(ours.conditions):
            if condition.type not in SYSTEM_CONDITIONS:
                causes += metadata.validate_label_key(condition.type, f"metadata.conditions[{i}].Type")
        name = ours.nominated_node_name
        if name and name != theirs.nominated_node_name:
            causes += all_invalid("status.nominatedNodeName", name, names.dns1123_subdomain(name))
        if ours.qos_class != theirs.qos_class:
            causes.append(invalid("status.qosClass", ours.qos_class, IMMUTABLE))
        causes += _validate_transitions(ours, theirs, old.spec)
        causes += _validate_claims(ours, new.spec)
        causes += _validate_addresses(ours.pod_ips, theirs.pod_ips, "status.podIPs")
        if ours.host_ips and ours.host_ips[0].ip != ours.host_ip:
            causes.append(invalid("status.hostIPs[0].ip", ours.host_ips[0].ip, "must be equal to `hostIP`"))
        causes += _validate_addresses(ours.host_ips, theirs.host_ips, "status.hostIPs")
        causes += _validate_users(ours, new.spec)
        return causes


def _keep_observed_generations(new: PodStatus, old: PodStatus) -> None:
    """Writers that do not know `observedGeneration` do not clear it. Changed in place."""
    new.observed_generation = new.observed_generation or old.observed_generation
    seen: defaultdict[str, list[int]] = defaultdict(list)
    for condition in reversed(old.conditions):
        seen[condition.type].append(condition.observed_generation)
    for i, condition in enumerate(new.conditions):
        before = seen[condition.type].pop() if seen[condition.type] else 0
        if not condition.observed_generation and before:
            new.conditions[i] = msgspec.structs.replace(condition, observed_generation=before)


def _validate_transitions(new: PodStatus, old: PodStatus, spec: PodSpec) -> Iterator[Cause]:
    """A container that will not be restarted must stay terminated. An ephemeral container is never
    restarted."""
    for attribute, wire in _LISTS:
        states = {status.name: status.state for status in getattr(new, attribute)}
        ephemeral = attribute.startswith("ephemeral")
        for i, status in ended_for_good(getattr(old, attribute), spec, ephemeral=ephemeral):
            if status.name in states and states[status.name].terminated is None:
                why = "may not be transitioned to non-terminated state"
                yield forbidden(f"status.{wire}[{i}].state", why)


def _validate_claims(status: PodStatus, spec: PodSpec) -> Iterator[Cause]:
    claims = {claim.name for claim in spec.resource_claims}
    seen: set[str] = set()
    for i, claim in enumerate(status.resource_claim_statuses):
        where = f"status.resourceClaimStatuses[{i}].name"
        if claim.name not in claims:
            yield invalid(where, claim.name, "must match the name of an entry in `spec.resourceClaims`")
        if claim.name in seen:
            yield duplicate(where, claim.name)
        seen.add(claim.name)
        if claim.resource_claim_name is not None:
            faults = names.dns1123_subdomain(claim.resource_claim_name)
            yield from all_invalid(where, claim.resource_claim_name, faults)


def _validate_addresses(
    addresses: Sequence[PodIP | HostIP], old: Sequence[PodIP | HostIP], path: str
) -> Iterator[Cause]:
    """Faults of `podIPs`: at most one of each family."""
    faulty = False
    standing = {address.ip for address in old}
    for i, address in enumerate(addresses):
        for cause in validate_ip(address.ip, f"{path}[{i}]", standing):
            faulty = True
            yield cause
    if faulty or len(addresses) < 2:
        return
    meant = (parsed_loosely(address.ip) for address in addresses)
    families = {address.version for address in meant if address is not None}
    if len(families) != len(addresses):
        yield invalid(path, list(addresses), "may specify no more than one IP for each IP family")


def _validate_users(status: PodStatus, spec: PodSpec) -> Iterator[Cause]:
    windows = spec.os is not None and spec.os.name == "windows"
    for attribute, wire in _LISTS:
        for i, container in enumerate(getattr(status, attribute)):
            user = container.user.linux if container.user is not None else None
            if user is None:
                continue
            where = f"status.{wire}[{i}].linux"
            if windows:
                yield forbidden(where, "cannot be set for a windows pod")
                continue
            yield from validate_id(user.uid, f"{where}.uid")
            yield from validate_id(user.gid, f"{where}.gid")
            for j, group in enumerate(user.supplemental_groups):
                yield from validate_id(group, f"{where}.supplementalGroups[{j}]")
