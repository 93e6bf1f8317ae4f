"""The subresource `status` of a pod: what may be written, and what cannot be taken back, such as an exit
code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from podling.apiserver.kinds.kind import Part
from podling.apiserver.kinds.pods.update import drop_alpha_status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import parsed_loosely, validate_ip
from podling.apiserver.rules.container.security import validate_id
from podling.apiserver.rules.field import IMMUTABLE, all_invalid, duplicate, forbidden, invalid
from podling.apiserver.rules.pod.annotations import validate_annotation_updates
from podling.model import names
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.ended_containers import ended_for_good
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import HostIP, PodCondition, PodIP, PodStatus

SYSTEM_CONDITIONS = frozenset(("PodScheduled", "Ready", "Initialized"))
_LISTS = (
    ("container_statuses", "containerStatuses"),
    ("init_container_statuses", "initContainerStatuses"),
    ("ephemeral_container_statuses", "ephemeralContainerStatuses"),
)


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
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *validate_annotation_updates(
                new.metadata.annotations, old.metadata.annotations, "metadata.annotations"
            ),
            *_validate_conditions(new.status.conditions),
            *_validate_fixed(new.status, old.status),
            *_validate_transitions(new.status, old.status, old.spec),
            *_validate_claims(new.status, new.spec),
            *_validate_addresses(new.status.pod_ips, old.status.pod_ips, "status.podIPs"),
            *_validate_host(new.status, old.status),
            *_validate_users(new.status, new.spec),
        ]


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


def _validate_conditions(conditions: list[PodCondition]) -> Iterator[Cause]:
    for i, condition in enumerate(conditions):
        if condition.type not in SYSTEM_CONDITIONS:
            yield from metadata.validate_label_key(condition.type, f"metadata.conditions[{i}].Type")


def _validate_fixed(new: PodStatus, old: PodStatus) -> Iterator[Cause]:
    name = new.nominated_node_name
    if name and name != old.nominated_node_name:
        yield from all_invalid("status.nominatedNodeName", name, names.dns1123_subdomain(name))
    if new.qos_class != old.qos_class:
        yield invalid("status.qosClass", new.qos_class, IMMUTABLE)


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


def _validate_host(status: PodStatus, old: PodStatus) -> Iterator[Cause]:
    if status.host_ips and status.host_ips[0].ip != status.host_ip:
        yield invalid("status.hostIPs[0].ip", status.host_ips[0].ip, "must be equal to `hostIP`")
    yield from _validate_addresses(status.host_ips, old.host_ips, "status.hostIPs")


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
