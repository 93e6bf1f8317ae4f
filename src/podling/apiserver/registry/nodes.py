"""Nodes: registered by their kubelets, which also keep their status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME, NONE, joined, or_none
from podling.apiserver.registry.kind import PROXY_VERBS, Column, Connect, Kind, Part, Subresource
from podling.apiserver.registry.node_validation import (
    validate_has,
    validate_node_update,
    validate_subnets,
    validate_taints,
)
from podling.model.errors import Cause
from podling.model.node import Node
from podling.model.scheme import resource_of

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"


class _Status(Part[Node]):
    name = "status"

    def prepare_update(self, new: Node, old: Node) -> None:
        new.spec = old.spec

    def validate_update(self, new: Node, old: Node) -> list[Cause]:
        return [*validate_node_update(new, old), *validate_has(new)]


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
        """The older field names the first of the newer."""
        spec = obj.spec
        if spec.pod_cidr and spec.pod_cidrs[:1] != [spec.pod_cidr]:
            spec.pod_cidrs = [spec.pod_cidr]
        elif spec.pod_cidrs and not spec.pod_cidr:
            spec.pod_cidr = spec.pod_cidrs[0]

    def prepare_update(self, new: Node, old: Node) -> None:
        new.status = old.status

    def validate(self, obj: Node) -> list[Cause]:
        return [*_validate_frame(obj), *validate_subnets(obj.spec.pod_cidrs, frozenset())]

    def validate_changed(self, new: Node, old: Node) -> list[Cause]:
        return [*_validate_frame(new), *validate_subnets(new.spec.pod_cidrs, set(old.spec.pod_cidrs))]

    def validate_update(self, new: Node, old: Node) -> list[Cause]:
        return list(validate_node_update(new, old))

    def row(self, obj: Node, now: datetime) -> list[Any]:
        info = obj.status.node_info
        return [
            obj.metadata.name,
            _condition(obj),
            joined(_roles(obj.metadata.labels)),
            age(obj.metadata.creation_timestamp, now),
            info.kubelet_version,
            _address(obj, "InternalIP"),
            _address(obj, "ExternalIP"),
            info.os_image or "<unknown>",
            info.kernel_version or "<unknown>",
            info.container_runtime_version or "<unknown>",
        ]


def _condition(node: Node) -> str:
    ready = [c.status for c in node.status.conditions if c.type == "Ready"]
    phrase = ("Ready" if ready[0] == "True" else "NotReady") if ready else "Unknown"
    return f"{phrase},SchedulingDisabled" if node.spec.unschedulable else phrase


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    roles.add(labels.get(ROLE_LABEL, ""))
    return sorted(roles - {""})


def _address(node: Node, type: str) -> str:
    return next((or_none(a.address) for a in node.status.addresses if a.type == type), NONE)


def _validate_frame(node: Node) -> list[Cause]:
    return [
        *metadata.validate(node.metadata, namespaced=False),
        *validate_taints(node.spec.taints),
        *validate_has(node),
    ]
