"""The subresource `status` of a pod: what may be written there. What cannot be taken back is kept, such as an
exit code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from podling.apiserver.kinds.kind import Part
from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import parsed_loosely, validate_ip, warn_of_ip
from podling.apiserver.rules.container.security import validate_id
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    duplicate,
    forbidden,
    internal_error,
    invalid,
    not_supported,
    required,
    too_long,
)
from podling.apiserver.rules.pod.annotations import validate_annotation_updates, validate_pod_annotations
from podling.model import names
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.status import ended_for_good
from podling.model.types.container import Container
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import (
    ContainerStatus,
    HostIP,
    PodExtendedResourceClaimStatus,
    PodIP,
    PodStatus,
    VolumeMountStatus,
)

SYSTEM_CONDITIONS = frozenset(("PodScheduled", "Ready", "Initialized"))
NEGATIVE = "must be a non-negative integer"
HEALTH = ("Healthy", "Unhealthy", "Unknown")
CLAIM = "claim:"
"""How the status of a device begins its name that was given by a claim."""
LONGEST_HEALTH = 1024
_LISTS = (
    ("container_statuses", "containerStatuses"),
    ("init_container_statuses", "initContainerStatuses"),
    ("ephemeral_container_statuses", "ephemeralContainerStatuses"),
)


class PodStatusPart(Part[Pod]):
    name = "status"
    unwritten = {"f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._shows_debug = gates.enabled("DebugSubresource")

    def prepare_update(self, new: Pod, old: Pod) -> None:
        shown = new.status.ephemeral_container_statuses if self._shows_debug else []
        new.status.debug_container_statuses = shown
        new.spec = old.spec
        new.metadata.owner_references = old.metadata.owner_references
        new.metadata.deletion_timestamp = old.metadata.deletion_timestamp
        new.status.qos_class = new.status.qos_class or old.status.qos_class
        _keep_observed_generations(new.status, old.status)
        drop_alpha_status(new.status, old.status)

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        ours, theirs = new.status, old.status
        causes = super().validate_update(new, old)
        causes += validate_annotation_updates(
            new.metadata.annotations, old.metadata.annotations, "metadata.annotations"
        )
        causes += validate_pod_annotations(new.metadata.annotations, new.spec, "metadata.annotations")
        for i, condition in enumerate(ours.conditions):
            where = f"status.conditions[{i}]"
            if condition.observed_generation < 0:
                causes.append(invalid(f"{where}.observedGeneration", condition.observed_generation, NEGATIVE))
            if condition.type not in SYSTEM_CONDITIONS:
                causes += metadata.validate_label_key(condition.type, f"{where}.Type")
        name = ours.nominated_node_name
        if name and name != theirs.nominated_node_name:
            causes += all_invalid("status.nominatedNodeName", name, names.dns1123_subdomain(name))
            if new.spec.node_name:
                why = "may not be set on pods that are already bound to a node"
                causes.append(forbidden("status.nominatedNodeName", why))
        if ours.observed_generation < 0:
            causes.append(invalid("status.observedGeneration", ours.observed_generation, NEGATIVE))
        if ours.qos_class != theirs.qos_class:
            causes.append(invalid("status.qosClass", ours.qos_class, IMMUTABLE))
        causes += _validate_transitions(ours, theirs, old.spec)
        causes += _validate_claims(ours, new.spec)
        causes += _validate_extended(ours.extended_resource_claim_status, new.spec)
        causes += _validate_addresses(ours.pod_ips, theirs.pod_ips, "status.podIPs")
        if ours.host_ips and ours.host_ips[0].ip != ours.host_ip:
            causes.append(invalid("status.hostIPs[0].ip", ours.host_ips[0].ip, "must be equal to `hostIP`"))
        causes += _validate_addresses(ours.host_ips, theirs.host_ips, "status.hostIPs")
        causes += _validate_users(ours, new.spec)
        causes += _validate_devices(ours, new.spec)
        return causes

    def warnings(self, obj: Pod) -> Iterator[str]:
        status = obj.status
        of_both: tuple[tuple[str, Sequence[PodIP | HostIP]], ...] = (
            ("podIPs", status.pod_ips),
            ("hostIPs", status.host_ips),
        )
        for wire, addresses in of_both:
            for i, address in enumerate(addresses):
                yield from warn_of_ip(address.ip, f"status.{wire}[{i}].ip")


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
        where = f"status.resourceClaimStatuses[{i}]"
        if claim.name not in claims:
            why = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{where}.name", claim.name, why)
        if claim.name in seen:
            yield duplicate(f"{where}.name", claim.name)
        seen.add(claim.name)
        if claim.resource_claim_name is not None:
            faults = names.dns1123_subdomain(claim.resource_claim_name)
            yield from all_invalid(f"{where}.resourceClaimName", claim.resource_claim_name, faults)


def _validate_addresses(
    addresses: Sequence[PodIP | HostIP], old: Sequence[PodIP | HostIP], path: str
) -> Iterator[Cause]:
    """Faults of `podIPs`: at most one of each family."""
    standing = {address.ip for address in old}
    for i, address in enumerate(addresses):
        yield from validate_ip(address.ip, f"{path}[{i}]", standing)
    if len(addresses) < 2:
        return
    meant = [parsed_loosely(address.ip) for address in addresses]
    if None in meant:
        i = meant.index(None)
        why = f"failed to check for dual stack with error:invalid IP[{i}]: {addresses[i].ip}"
        yield internal_error(path, why)
    families = {address.version for address in meant if address is not None}
    if len(addresses) > 2 or len(families) < 2:
        why = "may specify no more than one IP for each IP family"
        yield invalid(path, [{"IP": address.ip} for address in addresses], why)


def join_addresses(status: PodStatus) -> None:
    """`podIP` is the first of `podIPs`; who writes it alone, or another, means it."""
    first = status.pod_ips[0].ip if status.pod_ips else ""
    if status.pod_ip and status.pod_ip != first:
        status.pod_ips = [PodIP(ip=status.pod_ip)]
    status.pod_ip = status.pod_ip or first


def _validate_extended(claim: PodExtendedResourceClaimStatus | None, spec: PodSpec) -> Iterator[Cause]:
    """Of the claim that was made for the extended resources of containers."""
    if claim is None:
        return
    path = "status.extendedResourceClaimStatus"
    containers = {one.name: one for one in (*spec.init_containers, *spec.containers)}
    seen: set[tuple[str, ...]] = set()
    if not claim.request_mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    for i, mapping in enumerate(claim.request_mappings):
        where = f"{path}.requestMappings[{i}]"
        if mapping.container_name not in containers:
            why = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield invalid(f"{where}.containerName", mapping.container_name, why)
        elif mapping.resource_name not in containers[mapping.container_name].resources.requests:
            why = (
                "must match the extended resource name of an entry in "
                "spec.initContainers.resources.requests or spec.containers.resources.requests"
            )
            yield invalid(f"{where}.resourceName", mapping.resource_name, why)
        if (known := msgspec.structs.astuple(mapping)) in seen:
            yield duplicate(f"{where}.containerName", mapping.container_name)
            yield duplicate(f"{where}.resourceName", mapping.resource_name)
            yield duplicate(f"{where}.requestName", mapping.request_name)
        seen.add(known)
        faults = names.dns1123_label(mapping.request_name)
        yield from all_invalid(f"{path}.requestName", mapping.request_name, faults)
    name, where = claim.resource_claim_name, f"{path}.resourceClaimName"
    if not name:
        yield required(where)
    else:
        yield from all_invalid(where, name, names.dns1123_subdomain(name))


def _validate_devices(status: PodStatus, spec: PodSpec) -> Iterator[Cause]:
    """Of the health of devices that were allocated to containers."""
    containers = {one.name: one for one in (*spec.init_containers, *spec.containers)}
    for attribute, wire in _LISTS:
        for i, container in enumerate(getattr(status, attribute)):
            path = f"status.{wire}[{i}].allocatedResourcesStatus"
            if attribute.startswith("ephemeral"):
                if container.allocated_resources_status:
                    yield forbidden(path, "must not be specified in container status")
            else:
                yield from _validate_allocated(container, containers.get(container.name), path)


def _validate_allocated(status: ContainerStatus, container: Container | None, path: str) -> Iterator[Cause]:
    """`container`: the one of that name, of which alone it is known what it asked for."""
    claims = {
        f"{CLAIM}{claim.name}{'/' if claim.request else ''}{claim.request}"
        for claim in (container.resources.claims if container is not None else ())
    }
    for i, allocated in enumerate(status.allocated_resources_status):
        where, name = f"{path}[{i}]", allocated.name
        if container is not None and name.startswith(CLAIM):
            if name not in claims:
                why = (
                    "must match one of the container's resource claims in a format "
                    "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
                )
                yield invalid(f"{where}.name", name, why)
        elif container is not None and name not in container.resources.requests:
            yield invalid(f"{where}.name", name, "must match one of the container's resource requests")
        seen: set[str] = set()
        for j, device in enumerate(allocated.resources):
            at = f"{where}.resources[{j}]"
            if device.health not in HEALTH:
                yield not_supported(f"{at}.health", device.health, HEALTH)
            if device.message == "":
                yield required(f"{at}.message", "must be non-empty if specified")
            elif device.message is not None and len(device.message.encode()) > LONGEST_HEALTH:
                yield too_long(f"{at}.message", LONGEST_HEALTH)
            if device.resource_id in seen:
                yield duplicate(f"{at}.resourceID", device.resource_id)
            seen.add(device.resource_id)


def _validate_users(status: PodStatus, spec: PodSpec) -> Iterator[Cause]:
    windows = spec.os is not None and spec.os.name == "windows"
    for attribute, wire in _LISTS:
        for i, container in enumerate(getattr(status, attribute)):
            user = container.user.linux if container.user is not None else None
            if user is None:
                continue
            where = f"status.{wire}[{i}].user.linux"
            if windows:
                yield forbidden(where, "cannot be set for a windows pod")
                continue
            yield from validate_id(user.uid, f"{where}.uid")
            yield from validate_id(user.gid, f"{where}.gid")
            for j, group in enumerate(user.supplemental_groups):
                yield from validate_id(group, f"{where}.supplementalGroups[{j}]")
