"""The ephemeralcontainers subresource of a pod (R-EPH-1, R-EPH-2): entries are added, never changed, and
removed only where a gate allows it (R-EPH-11).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.apiserver.registry import metadata
from podling.apiserver.registry.difference import difference
from podling.apiserver.registry.field import forbidden
from podling.apiserver.registry.kind import Part
from podling.apiserver.registry.pod.annotations import MIRROR
from podling.apiserver.registry.pod.validation import validate_pod
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.meta import ObjectMeta
from podling.model.pod import Pod


class EphemeralContainers(Part[Pod]):
    name = "ephemeralcontainers"

    def __init__(self, gates: Gates = DEFAULT_GATES, *, removal: bool = False) -> None:
        self._gates = gates
        self._removal = removal

    def prepare_update(self, new: Pod, old: Pod) -> None:
        """All but the ephemeral containers is discarded."""
        new.metadata = subresource_meta(new.metadata, old.metadata)
        new.spec = msgspec.structs.replace(old.spec, ephemeral_containers=new.spec.ephemeral_containers)
        new.status = old.status

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        """The whole pod must be valid, not only what is added."""
        if MIRROR in old.metadata.annotations:
            return [forbidden("", "static pods do not support ephemeral containers")]
        causes = metadata.validate_update(new.metadata, old.metadata)
        causes += validate_pod(new, self._gates)
        if self._removal:
            causes += _validate_names(new, old)
        return [*causes, *_validate_kept(new, old, removal=self._removal)]


def subresource_meta(new: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """Of a write that changes nothing of the metadata, but says which state it is meant for."""
    return msgspec.structs.replace(old, uid=new.uid, resource_version=new.resource_version)


def drop_new_ephemeral(new: Pod, old: Pod | None) -> None:
    """With the gate off (R-EPH-8) a pod that has none gets none; what is stored survives every update."""
    if old is None or not old.spec.ephemeral_containers:
        new.spec.ephemeral_containers = []


def _validate_kept(new: Pod, old: Pod, *, removal: bool) -> Iterator[Cause]:
    path = "spec.ephemeralContainers"
    wanted = {container.name: container for container in new.spec.ephemeral_containers}
    for container in old.spec.ephemeral_containers:
        kept = wanted.get(container.name)
        if kept is None:
            if not removal:
                yield forbidden(
                    path, f'existing ephemeral containers "{container.name}" may not be removed\n'
                )
        elif kept != container:
            changes = difference(container, kept, container.name)
            why = f'existing ephemeral containers "{container.name}" may not be changed\n{changes}'
            yield forbidden(path, why)


def _validate_names(new: Pod, old: Pod) -> Iterator[Cause]:
    """The name of one that was removed is taken for as long as its kubelet shows it."""
    known = {container.name for container in old.spec.ephemeral_containers}
    shown = {status.name for status in old.status.ephemeral_container_statuses}
    for i, container in enumerate(new.spec.ephemeral_containers):
        if container.name in shown - known:
            why = "may not be used again while it is in `status.ephemeralContainerStatuses`"
            yield forbidden(f"spec.ephemeralContainers[{i}].name", why)
