"""What is wrong with a node: its taints, the subnets of its pods, and what it says it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import msgspec

from podling.apiserver.registry import metadata
from podling.apiserver.registry.container.resource_validation import validate_quantity
from podling.apiserver.registry.field import duplicate, forbidden, invalid, not_supported, required
from podling.apiserver.registry.ip_addresses import validate_cidr
from podling.model import names
from podling.model.errors import Cause
from podling.model.node import Node, NodeSpec, Taint

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def validate_taints(taints: list[Taint]) -> Iterator[Cause]:
    """Kubernetes looks for them in the metadata."""
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
            yield duplicate(path, taint, "taints must be unique by key and effect pair")
        seen.add((taint.key, taint.effect))


def validate_has(node: Node) -> Iterator[Cause]:
    """What the node has of each resource. Kubernetes writes these paths with points only."""
    for wire, amounts in (("capacity", node.status.capacity), ("allocatable", node.status.allocatable)):
        for name, amount in amounts.items():
            yield from validate_quantity(name, amount, f"status.{wire}.{name}")


def validate_subnets(subnets: list[str], standing: AbstractSet[str]) -> Iterator[Cause]:
    path = "spec.podCIDRs"
    for i, subnet in enumerate(subnets):
        yield from validate_cidr(subnet, f"{path}[{i}]", standing)
    families = Counter(":" in subnet for subnet in subnets)
    if any(count > 1 for count in families.values()):
        yield invalid(path, subnets, "may specify no more than one CIDR for each IP family")
    seen: set[str] = set()
    for i, subnet in enumerate(subnets):
        if subnet in seen:
            yield duplicate(f"{path}[{i}]", subnet)
        seen.add(subnet)


def validate_node_update(new: Node, old: Node) -> Iterator[Cause]:
    yield from metadata.validate_update(new.metadata, old.metadata)
    seen: set[tuple[str, ...]] = set()
    for i, address in enumerate(new.status.addresses):
        known = msgspec.structs.astuple(address)
        if known in seen:
            yield duplicate(f"status.addresses[{i}]", address)
        seen.add(known)
    yield from _validate_given(new.spec, old.spec)


def _validate_given(new: NodeSpec, old: NodeSpec) -> Iterator[Cause]:
    """What a node was given once is its own."""
    why = 'node updates may not change {} except from "" to valid'
    if old.pod_cidrs and new.pod_cidrs != old.pod_cidrs:
        yield forbidden("spec.podCIDRs", why.format("podCIDR"))
    if old.provider_id and new.provider_id != old.provider_id:
        yield forbidden("spec.providerID", why.format("providerID"))
    if new.external_id != old.external_id:
        yield forbidden("spec.externalID", "may not be updated")
