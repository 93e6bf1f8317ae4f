"""Faults of a container's resizePolicy: what a change of a resource means to it when it runs."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import duplicate, invalid, one_of
from podling.model.container import ContainerResizePolicy
from podling.model.errors import Cause

RESOURCES = frozenset(("cpu", "memory"))
POLICIES = frozenset(("NotRequired", "RestartContainer"))


def validate_resize_policies(
    policies: list[ContainerResizePolicy], path: str, restart_policy: str
) -> Iterator[Cause]:
    """`restart_policy`: the pod's. But for repetition Kubernetes names the list, not the item."""
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        if policy.resource_name in seen:
            yield duplicate(f"{path}[{i}]", policy.resource_name)
        seen.add(policy.resource_name)
        yield from one_of(path, policy.resource_name, RESOURCES)
        yield from one_of(path, policy.restart_policy, POLICIES)
        if restart_policy == "Never" and policy.restart_policy != "NotRequired":
            why = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            yield invalid(path, policy.restart_policy, why)
