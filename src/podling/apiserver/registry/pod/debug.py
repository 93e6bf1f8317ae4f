"""The debug subresource of a pod (R-DBG-1): `pods/POD/debug/NAME`, behind the gate DebugSubresource.

A front on the ephemeral containers of the pod, as the first of the designs had it: a container is posted,
read and deleted by its own name. The list in the pod's spec is all there is, so whatever is made here is an
ephemeral container like any other, and every other one can be read and deleted here.
"""

from __future__ import annotations

from typing import TypeVar

from podling.apiserver.registry.kind import Members
from podling.apiserver.registry.pod.ephemeral import EphemeralContainers
from podling.model.container import Container, EphemeralContainer, EphemeralContainerCommon
from podling.model.errors import Cause, StatusError, conflict, not_found
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.meta import ObjectMeta
from podling.model.pod import Pod, PodDebugContainer

_C = TypeVar("_C", Container, EphemeralContainer)

RESOURCE = "pods/debug"


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
    """The rules of the whole list for a request about one entry: what is wrong with that entry is told by the
    paths of the request. `path` is that of the container in it.
    """

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
    """Add `container`; or, when one of its name has ended, take that away first, and say False: the name is
    free as soon as the kubelet shows it no more. Raises StatusError 409 for a name that is in use.
    """
    name = container.name
    if not is_free(pod, name):
        _refuse_alive(pod, name)
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


def _refuse_alive(pod: Pod, name: str) -> None:
    """Raises StatusError 409."""
    shown = next(status for status in pod.status.ephemeral_container_statuses if status.name == name)
    if shown.state.terminated is None:
        state = "running" if shown.state.running else "being started"
        raise _taken(name, f"a container of this name is {state}")


def _taken(name: str, why: str) -> StatusError:
    return conflict(RESOURCE, name, why)


def is_free(pod: Pod, name: str) -> bool:
    """Whether the kubelet shows no container of that name any more."""
    return not any(status.name == name for status in pod.status.ephemeral_container_statuses)


def _entry(pod: Pod, name: str) -> EphemeralContainer:
    for container in pod.spec.ephemeral_containers:
        if container.name == name:
            return container
    raise not_found(RESOURCE, name)


def _as(type_: type[_C], container: EphemeralContainerCommon) -> _C:
    """The fields both sorts of container have."""
    common = {name: getattr(container, name) for name in EphemeralContainerCommon.__struct_fields__}
    return type_(**common)
