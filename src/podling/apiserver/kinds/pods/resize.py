"""The subresource `resize` of a pod: changes CPU and memory of its containers, and nothing else.

The kubelet carries the change out. A pod on a node whose kubelet does not report the resources of running
containers cannot be resized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from podling.apiserver.kinds.kind import Part, keep_metadata
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import forbidden, invalid
from podling.apiserver.rules.pod.spec import validate_pod
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.quantity import Quantity
from podling.model.rules.resources import is_sidecar, qos_class
from podling.model.rules.status import MIRROR
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod, PodSpec

RESIZABLE = ("cpu", "memory")

ResourceList = Mapping[str, Quantity]


class Resize(Part[Pod]):
    name = "resize"
    has_tables = False

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates

    def prepare_update(self, new: Pod, old: Pod) -> None:
        """Everything but resources and resize policies is discarded; other changes of containers are kept for
        validation to refuse."""
        wanted = new.spec
        if not _are_same(wanted.containers, old.spec.containers):
            return
        if not _are_same(wanted.init_containers, old.spec.init_containers):
            return
        keep_metadata(new.metadata, old.metadata)
        new.status = old.status
        new.spec = msgspec.structs.replace(
            old.spec,
            containers=_resized(wanted.containers, old.spec.containers),
            init_containers=_resized(wanted.init_containers, old.spec.init_containers),
            resources=wanted.resources,
        )

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        if MIRROR in old.metadata.annotations:
            return [forbidden("[]", "static pods cannot be resized")]
        if old.spec.os is not None and old.spec.os.name == "windows":
            return [forbidden("[]", "windows pods cannot be resized")]
        causes = metadata.validate_update(new.metadata, old.metadata) + validate_pod(new, self._gates)
        if qos_class(old) != qos_class(new):
            why = "Pod QOS Class may not change as a result of resizing"
            causes.append(invalid("spec", new.status.qos_class, why))
        # A kubelet that supports resizing reports the resources of running containers.
        running = (status for status in old.status.container_statuses if status.state.running is not None)
        first = next(running, None)
        if first is not None and first.resources is None:
            causes.append(forbidden("spec", "Pod running on node without support for resize"))
        causes.extend(_validate_whole(new.spec.resources, old.spec.resources))
        if old.status.node_allocatable_resource_claim_statuses:
            why = "pods with node allocatable resource claims cannot be resized"
            causes.append(forbidden("spec", why))
        moved = [*_validate_order(new.spec, old.spec)]
        causes += moved or _validate_changes(new.spec, old.spec)
        wholes = new.spec.resources, old.spec.resources
        if not causes and wholes[0] != wholes[1] and not any(map(_says_something, wholes)):
            # From nothing to what says nothing.
            causes.append(forbidden("spec", "only cpu and memory resources are mutable"))
        return causes


def _are_same(new: Sequence[Container], old: Sequence[Container]) -> bool:
    return [container.name for container in new] == [container.name for container in old]


def _resized(new: list[Container], old: list[Container]) -> list[Container]:
    return [
        msgspec.structs.replace(before, resources=after.resources, resize_policy=after.resize_policy)
        for after, before in zip(new, old, strict=True)
    ]


def _validate_order(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    for wire, ours, theirs in (
        ("containers", new.containers, old.containers),
        ("initContainers", new.init_containers, old.init_containers),
    ):
        if len(ours) != len(theirs):
            yield forbidden(f"spec.{wire}", f"{wire} may not be added or removed on resize")
            continue
        for i, (after, before) in enumerate(zip(ours, theirs, strict=True)):
            if after.name != before.name:
                why = f"{wire} may not be renamed or reordered on resize"
                yield forbidden(f"spec.{wire}[{i}].name", why)


def _validate_whole(new: ResourceRequirements | None, old: ResourceRequirements | None) -> Iterator[Cause]:
    """Faults of changes of the pod-level resources, where they say something."""
    before, after = old or ResourceRequirements(), new or ResourceRequirements()
    if not _says_something(before) and not _says_something(after):
        return
    if new is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    yield from _validate_kept(after, before, "spec.resources", "pod-level resource")
    resizable = _without_resizable(after, before)
    if after.claims or resizable != before:
        yield forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _says_something(resources: ResourceRequirements | None) -> bool:
    return resources is not None and bool(resources.limits or resources.requests)


def _validate_changes(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    init, apps = "spec.initContainers", "spec.containers"
    for path, ours, theirs in (
        (init, new.init_containers, old.init_containers),
        (apps, new.containers, old.containers),
    ):
        for i, (after, before) in enumerate(zip(ours, theirs, strict=True)):
            where = f"{path}[{i}].resources"
            yield from _validate_kept(after.resources, before.resources, where, "resource")
    for after, before in zip(new.containers, old.containers, strict=True):
        if _apart_from_resizable(after, before) != before:
            yield forbidden("spec", "only cpu and memory resources are mutable")
    for i, (after, before) in enumerate(zip(new.init_containers, old.init_containers, strict=True)):
        if _apart_from_resizable(after, before) != before:
            why = "only cpu and memory resources for init or sidecar containers are mutable"
            yield forbidden(f"{init}[{i}]", why)
        restarts = any(policy.restart_policy == "RestartContainer" for policy in after.resize_policy)
        if after != before and restarts and not is_sidecar(after):
            why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            yield forbidden(f"{init}[{i}]", why)


def _validate_kept(
    new: ResourceRequirements, old: ResourceRequirements, path: str, what: str
) -> Iterator[Cause]:
    for wire, after, before in (
        ("requests", new.requests, old.requests),
        ("limits", new.limits, old.limits),
    ):
        if before.keys() - after.keys():
            yield forbidden(f"{path}.{wire}", f"{what} {wire} cannot be removed")


def _apart_from_resizable(new: Container, old: Container) -> Container:
    return msgspec.structs.replace(new, resources=_without_resizable(new.resources, old.resources))


def _without_resizable(new: ResourceRequirements, old: ResourceRequirements) -> ResourceRequirements:
    """`new` with the resizable fields of `old`. Claims are left out, so that what has some is never equal to
    `old`, and cannot be resized."""
    return ResourceRequirements(
        limits=_as_before(new.limits, old.limits),
        requests=_as_before(new.requests, old.requests),
    )


def _as_before(new: ResourceList, old: ResourceList) -> dict[str, Quantity]:
    others = {name: amount for name, amount in new.items() if name not in RESIZABLE}
    return others | {name: old[name] for name in RESIZABLE if name in old}
