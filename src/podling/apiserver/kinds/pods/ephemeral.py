"""The subresources of a pod that write its ephemeral containers.

Through `ephemeralcontainers` (R-EPH-1, R-EPH-2) entries are added and never changed, and removed only if a
gate allows it (R-EPH-11). `debug` (R-DBG-1), behind the gate DebugSubresource, has a path for each container,
`pods/POD/debug/NAME`, which is posted, read and deleted by its name. It keeps nothing of its own: it writes
the same list in the pod's spec, so containers made through either subresource are the same.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from podling.apiserver.kinds.kind import Members, Part, keep_metadata
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import difference, forbidden
from podling.apiserver.rules.pod.spec import validate_pod
from podling.model.errors import Cause, StatusError, conflict, not_found
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.status import MIRROR
from podling.model.types.container import Container, EphemeralContainer, EphemeralContainerCommon
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodDebugContainer

_C = TypeVar("_C", Container, EphemeralContainer)

RESOURCE = "pods/debug"


class EphemeralContainers(Part[Pod]):
    name = "ephemeralcontainers"
    has_tables = False

    def __init__(self, gates: Gates = DEFAULT_GATES, *, removal: bool = False) -> None:
        self._gates = gates
        self._removal = removal

    def prepare_update(self, new: Pod, old: Pod) -> None:
        """Everything but the ephemeral containers is discarded."""
        keep_metadata(new.metadata, old.metadata)
        new.spec = msgspec.structs.replace(old.spec, ephemeral_containers=new.spec.ephemeral_containers)
        new.status = old.status

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        """Faults of the whole pod, not only of what is added."""
        if MIRROR in old.metadata.annotations:
            return [forbidden("[]", "static pods do not support ephemeral containers")]
        causes = metadata.validate_update(new.metadata, old.metadata)
        causes += validate_pod(new, self._gates)
        path = "spec.ephemeralContainers"
        known = {container.name for container in old.spec.ephemeral_containers}
        shown = {status.name for status in old.status.ephemeral_container_statuses}
        for i, container in enumerate(new.spec.ephemeral_containers if self._removal else ()):
            # A removed container's name stays taken as long as the kubelet reports it.
            if container.name in shown - known:
                why = "may not be used again while it is in `status.ephemeralContainerStatuses`"
                causes.append(forbidden(f"{path}[{i}].name", why))
        wanted = {container.name: container for container in new.spec.ephemeral_containers}
        for container in old.spec.ephemeral_containers:
            kept, what = wanted.get(container.name), f'existing ephemeral containers "{container.name}"'
            if kept is None and not self._removal:
                causes.append(forbidden(path, f"{what} may not be removed\n"))
            elif kept is not None and kept != container:
                changes = difference(container, kept, container.name)
                causes.append(forbidden(path, f"{what} may not be changed\n{changes}"))
        return causes


def drop_new_ephemeral(new: Pod, old: Pod | None) -> None:
    """With the gate off (R-EPH-8), a pod without ephemeral containers gets none; stored ones survive every
    update."""
    if old is None or not old.spec.ephemeral_containers:
        new.spec.ephemeral_containers = []


class DebugContainers(Members[Pod]):
    name = "debug"
    body = PodDebugContainer

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates

    def read(self, obj: Pod, name: str) -> PodDebugContainer:
        """Raises StatusError 404."""
        meta = ObjectMeta(name=name, namespace=obj.metadata.namespace)
        return PodDebugContainer(metadata=meta, container=_as(Container, _entry(obj, name)))

    def rules(self, name: str) -> OneEphemeralContainer:
        return OneEphemeralContainer(name, "container.", self._gates)

    def add(self, obj: Pod, name: str, body: PodDebugContainer) -> bool:
        container = _as(EphemeralContainer, body.container)
        container.name = name
        return take_name(obj, container)

    def remove(self, obj: Pod, name: str) -> None:
        """Raises StatusError 404."""
        obj.spec.ephemeral_containers.remove(_entry(obj, name))

    def is_free(self, obj: Pod, name: str) -> bool:
        return is_free(obj, name)


class OneEphemeralContainer(EphemeralContainers):
    """The rules of the list, for a request about one entry: faults of that entry have the paths of the
    request's body. `path`: that of the container in the body."""

    def __init__(self, container: str, path: str, gates: Gates = DEFAULT_GATES) -> None:
        super().__init__(gates, removal=True)
        self._container = container
        self._path = path

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        names = [container.name for container in new.spec.ephemeral_containers]
        index = names.index(self._container) if self._container in names else -1
        prefix = f"spec.ephemeralContainers[{index}]."
        return [
            cause._replace(field=self._path + cause.field.removeprefix(prefix))
            if cause.field.startswith(prefix)
            else cause
            for cause in super().validate_update(new, old)
        ]


def take_name(pod: Pod, container: EphemeralContainer) -> bool:
    """Add `container`. If one of its name has ended, remove that instead and return False: the name is free
    once the kubelet no longer reports it. Raises StatusError 409 for a name in use."""
    name = container.name
    if not is_free(pod, name):
        shown = next(status for status in pod.status.ephemeral_container_statuses if status.name == name)
        if shown.state.terminated is None:
            state = "running" if shown.state.running else "being started"
            raise _taken(name, f"a container of this name is {state}")
        kept = [other for other in pod.spec.ephemeral_containers if other.name != name]
        pod.spec.ephemeral_containers = kept
        return False
    spec = pod.spec
    if any(other.name == name for other in (*spec.init_containers, *spec.containers)):
        raise _taken(name, "the pod has a container of this name")
    if any(other.name == name for other in spec.ephemeral_containers):
        raise _taken(name, "a container of this name is being started")
    spec.ephemeral_containers.append(container)
    return True


def _taken(name: str, why: str) -> StatusError:
    return conflict(RESOURCE, name, why)


def is_free(pod: Pod, name: str) -> bool:
    """Whether the kubelet no longer reports a container of that name."""
    return not any(status.name == name for status in pod.status.ephemeral_container_statuses)


def _entry(pod: Pod, name: str) -> EphemeralContainer:
    for container in pod.spec.ephemeral_containers:
        if container.name == name:
            return container
    raise not_found(RESOURCE, name)


def _as(type_: type[_C], container: EphemeralContainerCommon) -> _C:
    """The container as another type, with the fields that both have."""
    common = {name: getattr(container, name) for name in EphemeralContainerCommon.__struct_fields__}
    return type_(**common)
