"""What belongs to nodes: Nodes, the Leases by which their kubelets and leader elections show that they are
alive, and RuntimeClasses, which name handlers of the container runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from types import NoneType
from typing import Any

import msgspec

from podling.apiserver.kinds.columns import AGE, NAME, NONE, age, joined, or_none
from podling.apiserver.kinds.kind import PROXY_VERBS, Column, Connect, Kind, Status, Subresource
from podling.apiserver.kinds.pods.warnings import DEPRECATED_LABELS
from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import parsed_cidr_loosely, validate_cidr
from podling.apiserver.rules.container.resources import validate_quantity, validate_resources
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    at_least,
    duplicate,
    forbidden,
    internal,
    internal_error,
    invalid,
    not_supported,
    required,
)
from podling.apiserver.rules.scheduling import validate_tolerations
from podling.model import names
from podling.model.errors import Cause
from podling.model.rules.defaults import default_amounts
from podling.model.scheme import resource_of
from podling.model.types.container import ResourceRequirements
from podling.model.types.coordination import Lease
from podling.model.types.node import Node, Taint
from podling.model.types.node_k8s_io import RuntimeClass

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"
LONGEST_FEATURE = 253
NO_FEATURE = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_FEATURE = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*")
UNUSED_ID = "spec.externalID: this field is deprecated, and is unused by Kubernetes"


class Leases(Kind[Lease]):
    resource = resource_of(Lease)
    judges_prefix_again = False
    creates_on_update = True
    updates_unconditionally = False
    columns = (NAME, Column("Holder", description="Who holds the lease."), AGE)

    def prepare_create(self, obj: Lease, now: datetime) -> None:
        # Behind the gate CoordinatedLeaderElection, which is off.
        obj.spec.strategy = obj.spec.preferred_holder = None

    def prepare_update(self, new: Lease, old: Lease) -> None:
        new.spec.strategy = new.spec.preferred_holder = None

    def validate(self, obj: Lease) -> list[Cause]:
        causes, spec = metadata.validate(obj.metadata, standard=False), obj.spec
        if spec.lease_duration_seconds is not None:
            causes += at_least("spec.leaseDurationSeconds", spec.lease_duration_seconds, 1)
        if spec.lease_transitions is not None:
            causes += at_least("spec.leaseTransitions", spec.lease_transitions, 0)
        return causes

    def row(self, obj: Lease, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.spec.holder_identity or "", age(obj.metadata.creation_timestamp, now)]


def validate_taints(taints: list[Taint]) -> Iterator[Cause]:
    """Faults of taints. Their paths begin with `metadata`, as in Kubernetes."""
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        path = f"metadata.taints[{i}]"
        yield from metadata.validate_label_key(taint.key, f"{path}.key")
        if faults := names.label_value(taint.value):
            yield invalid(f"{path}.value", taint.value, ";".join(faults))
        if not taint.effect:
            yield required(f"{path}.effect")
        elif taint.effect not in EFFECTS:
            yield not_supported(f"{path}.effect", taint.effect, EFFECTS)
        if (taint.key, taint.effect) in seen:
            yield duplicate(path, internal(taint), "taints must be unique by key and effect pair")
        seen.add((taint.key, taint.effect))


def validate_has(node: Node) -> Iterator[Cause]:
    """Faults of capacity and allocatable. The paths have dots where others have brackets, as in
    Kubernetes."""
    for wire, amounts in (("capacity", node.status.capacity), ("allocatable", node.status.allocatable)):
        for name, amount in amounts.items():
            yield from validate_quantity(name, amount, f"status.{wire}.{name}")


def validate_subnets(subnets: list[str], standing: AbstractSet[str]) -> Iterator[Cause]:
    path = "spec.podCIDRs"
    for i, subnet in enumerate(subnets):
        yield from validate_cidr(subnet, f"{path}[{i}]", standing)
    if len(subnets) > 1:
        meant = [parsed_cidr_loosely(subnet) for subnet in subnets]
        if None in meant:
            i = meant.index(None)
            why = "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR"
            yield internal_error(path, f"{why}[{i}]: <nil> (invalid CIDR address: {subnets[i]})")
        if len(subnets) > 2 or len({type(one) for one in meant} - {NoneType}) < 2:
            yield invalid(path, subnets, "may specify no more than one CIDR for each IP family")


def validate_node_update(new: Node, old: Node) -> Iterator[Cause]:
    yield from metadata.validate_update(new.metadata, old.metadata)
    seen: set[tuple[str, ...]] = set()
    for i, address in enumerate(new.status.addresses):
        known = msgspec.structs.astuple(address)
        if known in seen:
            yield duplicate(f"status.addresses[{i}]", internal(address))
        seen.add(known)
    # Faults of changes of podCIDRs and providerID, which can be set once only.
    why = 'node updates may not change {} except from "" to valid'
    if old.spec.pod_cidrs and new.spec.pod_cidrs != old.spec.pod_cidrs:
        yield forbidden("spec.podCIDRs", why.format("podCIDR"))
    if old.spec.provider_id and new.spec.provider_id != old.spec.provider_id:
        yield forbidden("spec.providerID", why.format("providerID"))
    if new.spec.external_id != old.spec.external_id:
        yield forbidden("spec.externalID", "may not be updated")


def validate_features(features: list[str], path: str) -> Iterator[Cause]:
    """What a node declares to support: names in order, each once."""
    for i, feature in enumerate(features):
        where, named = f"{path}[{i}]", f'invalid feature name "{feature}"'
        if i and feature == features[i - 1]:
            yield duplicate(where, feature)
        elif i and feature < features[i - 1]:
            yield invalid(where, feature, "list must be sorted alphabetically")
        if len(feature) > LONGEST_FEATURE:
            yield invalid(where, feature, f"{named}: must be no more than {LONGEST_FEATURE} characters")
        elif not _FEATURE.fullmatch(feature):
            yield invalid(where, feature, f"{named}: {NO_FEATURE}")


class _Status(Status):
    def prepare_update(self, new: Node, old: Node) -> None:
        super().prepare_update(new, old)
        new.status.config = None

    def validate_update(self, new: Node, old: Node) -> list[Cause]:
        return [
            *validate_node_update(new, old),
            *validate_has(new),
            *validate_features(new.status.declared_features, "status.declaredFeatures"),
        ]


class Nodes(Kind[Node]):
    resource = resource_of(Node)
    subresources: Mapping[str, Subresource] = {
        "proxy": Connect("proxy", "NodeProxyOptions", PROXY_VERBS, has_path=True),
        "status": _Status(),
    }
    columns = (
        NAME,
        Column("Status", description="Whether the kubelet is ready for pods, and takes new ones."),
        Column("Roles", description="Roles given by labels."),
        AGE,
        Column("Version", description="Version of the kubelet."),
        Column("Internal-IP", description="Address within the cluster.", priority=1),
        Column("External-IP", description="Address outside the cluster.", priority=1),
        Column("OS-Image", description="Operating system of the node.", priority=1),
        Column("Kernel-Version", description="Kernel of the node.", priority=1),
        Column("Container-Runtime", description="Runtime of the node and its version.", priority=1),
    )
    selectable_fields = {"spec.unschedulable": lambda node: str(node.spec.unschedulable).lower()}

    def default(self, obj: Node) -> None:
        """`podCIDR` is the first of `podCIDRs`, and all there is may be allocated."""
        obj.status.allocatable = obj.status.allocatable or dict(obj.status.capacity)
        default_amounts(obj.status.capacity, obj.status.allocatable)
        spec = obj.spec
        if spec.pod_cidr and spec.pod_cidrs[:1] != [spec.pod_cidr]:
            spec.pod_cidrs = [spec.pod_cidr]
        elif spec.pod_cidrs and not spec.pod_cidr:
            spec.pod_cidr = spec.pod_cidrs[0]

    def prepare_create(self, obj: Node, now: datetime) -> None:
        obj.spec.config_source = obj.status.config = None

    def prepare_update(self, new: Node, old: Node) -> None:
        new.status = old.status
        new.spec.config_source = None

    def validate(self, obj: Node) -> list[Cause]:
        return [*_validate_frame(obj), *validate_subnets(obj.spec.pod_cidrs, frozenset())]

    def validate_changed(self, new: Node, old: Node) -> list[Cause]:
        return [*_validate_frame(new), *validate_subnets(new.spec.pod_cidrs, set(old.spec.pod_cidrs))]

    def validate_update(self, new: Node, old: Node) -> list[Cause]:
        return list(validate_node_update(new, old))

    def warnings(self, obj: Node) -> list[str]:
        return [UNUSED_ID] if obj.spec.external_id else []

    def row(self, obj: Node, now: datetime) -> list[Any]:
        info, labels = obj.status.node_info, obj.metadata.labels
        ready = [c.status for c in obj.status.conditions if c.type == "Ready"]
        condition = ("Ready" if ready[0] == "True" else "NotReady") if ready else "Unknown"
        if obj.spec.unschedulable:
            condition += ",SchedulingDisabled"
        roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
        roles.add(labels.get(ROLE_LABEL, ""))
        return [
            obj.metadata.name,
            condition,
            joined(sorted(roles - {""})),
            age(obj.metadata.creation_timestamp, now),
            info.kubelet_version,
            _address(obj, "InternalIP"),
            _address(obj, "ExternalIP"),
            info.os_image or "<unknown>",
            (info.kernel_version or "<unknown>") + (f" ({info.architecture})" if info.architecture else ""),
            info.container_runtime_version or "<unknown>",
        ]


def _address(node: Node, type: str) -> str:
    return next((or_none(a.address) for a in node.status.addresses if a.type == type), NONE)


def _validate_frame(node: Node) -> Iterator[Cause]:
    yield from metadata.validate(node.metadata, namespaced=False)
    yield from validate_taints(node.spec.taints)
    yield from validate_has(node)
    swap = node.status.node_info.swap
    if swap and swap.capacity is not None and swap.capacity <= 0:
        # The path is that of Kubernetes, which has no such field.
        yield invalid("metadata.nodeSwapStatus.capacity", swap.capacity, "must be greater than zero")
    yield from validate_features(node.status.declared_features, "status.declaredFeatures")


class RuntimeClasses(Kind[RuntimeClass]):
    resource = resource_of(RuntimeClass)
    creates_on_update = True
    updates_unconditionally = False
    columns = (NAME, Column("Handler", description="What the container runtime calls it."), AGE)

    def validate(self, obj: RuntimeClass) -> list[Cause]:
        causes = metadata.validate(obj.metadata, namespaced=False, standard=False)
        if not obj.handler:
            causes.append(required("handler"))
        else:
            causes += all_invalid("handler", obj.handler, names.dns1123_label(obj.handler))
        if obj.overhead is not None:
            causes += validate_resources(ResourceRequirements(limits=obj.overhead.pod_fixed), "overhead")
        if obj.scheduling is not None:
            causes += metadata.validate_labels(obj.scheduling.node_selector, "scheduling.nodeSelector")
            tolerations, path = obj.scheduling.tolerations, "scheduling.tolerations"
            causes += validate_tolerations(tolerations, path)
            seen: set[tuple[Any, ...]] = set()
            for i, toleration in enumerate(tolerations):
                if (known := msgspec.structs.astuple(toleration)) in seen:
                    causes.append(duplicate(f"{path}[{i}]", internal(toleration)))
                seen.add(known)
        return causes

    def validate_update(self, new: RuntimeClass, old: RuntimeClass) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.handler != old.handler:
            causes.append(invalid("handler", new.handler, IMMUTABLE))
        return causes

    def warnings(self, obj: RuntimeClass) -> list[str]:
        selected = obj.scheduling.node_selector if obj.scheduling is not None else {}
        return [
            f"scheduling.nodeSelector: {DEPRECATED_LABELS[key]}"
            for key in selected
            if key in DEPRECATED_LABELS
        ]

    def row(self, obj: RuntimeClass, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.handler, age(obj.metadata.creation_timestamp, now)]
