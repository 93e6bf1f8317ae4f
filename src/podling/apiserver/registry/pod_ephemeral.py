"""The ephemeralcontainers subresource of a pod (R-EPH-1, R-EPH-2): entries are added, never changed."""

from __future__ import annotations

import msgspec

from podling.apiserver.registry import metadata
from podling.apiserver.registry.difference import difference
from podling.apiserver.registry.field import forbidden
from podling.apiserver.registry.kind import Part
from podling.apiserver.registry.pod_validation import validate_pod
from podling.model.errors import Cause
from podling.model.pod import Pod

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class EphemeralContainers(Part[Pod]):
    name = "ephemeralcontainers"

    def prepare_update(self, new: Pod, old: Pod) -> None:
        """All but the ephemeral containers is discarded."""
        meta = new.metadata
        new.metadata = msgspec.structs.replace(
            old.metadata, uid=meta.uid, resource_version=meta.resource_version
        )
        new.spec = msgspec.structs.replace(old.spec, ephemeral_containers=new.spec.ephemeral_containers)
        new.status = old.status

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        """The whole pod must be valid, not only what is added."""
        causes = validate_pod(new) + metadata.validate_update(new.metadata, old.metadata)
        if MIRROR_ANNOTATION in old.metadata.annotations:
            causes.append(forbidden("", "static pods do not support ephemeral containers"))
        return causes + _validate_kept(new, old)


def _validate_kept(new: Pod, old: Pod) -> list[Cause]:
    path = "spec.ephemeralContainers"
    wanted = {container.name: container for container in new.spec.ephemeral_containers}
    causes = []
    for container in old.spec.ephemeral_containers:
        kept = wanted.get(container.name)
        if kept is None:
            why = f'existing ephemeral containers "{container.name}" may not be removed\n'
            causes.append(forbidden(path, why))
        elif kept != container:
            changes = difference(container, kept, container.name)
            why = f'existing ephemeral containers "{container.name}" may not be changed\n{changes}'
            causes.append(forbidden(path, why))
    return causes
