"""How many pods the owners of some pods are to have, which is what a budget's percentage is of.

Each owner counts once, with the replicas it says: a Deployment in place of its ReplicaSets. Pods without an
owner do not count, and one whose owner is of no kind that has a scale makes the budget fail.
"""

from __future__ import annotations

from collections.abc import Iterable

from podling.client.informer import Informer, Informers
from podling.controllers.workloads.claims import controller_of
from podling.model.types.apps import Deployment, ReplicaSet, StatefulSet
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from podling.model.types.replication_controller import ReplicationController

Scaled = Deployment | ReplicaSet | StatefulSet | ReplicationController
SCALED: tuple[type[Scaled], ...] = (Deployment, ReplicaSet, StatefulSet, ReplicationController)


class NoScale(Exception):
    """The message says of which pod."""


def unmanaged(pods: Iterable[Pod]) -> bool:
    """Whether some of them have no owner, and so do not count."""
    return any(controller_of(pod.metadata) is None for pod in pods)


class Scales:
    def __init__(self, informers: Informers) -> None:
        self._owners: dict[tuple[str, str], Informer[Scaled]] = {
            (_group(type_.API_VERSION), type_.KIND): informers.of(type_) for type_ in SCALED
        }

    def expected(self, pods: Iterable[Pod]) -> int:
        """Raises NoScale."""
        found: dict[str, int] = {}
        for pod in pods:
            owner = self._owner(pod)
            if owner is not None and isinstance(owner, ReplicaSet):
                owner = self._owner(owner) or owner
            if owner is not None:
                found[owner.metadata.uid] = owner.spec.replicas or 0
            elif controller_of(pod.metadata) is not None:
                raise NoScale(f'found no controllers for pod "{pod.metadata.name}"')
        return sum(found.values())

    def _owner(self, one: KubeObject) -> Scaled | None:
        ref = controller_of(one.metadata)
        owners = self._owners.get((_group(ref.api_version), ref.kind)) if ref is not None else None
        if ref is None or owners is None:
            return None
        owner = owners.get(one.metadata.namespace, ref.name)
        return owner if owner is not None and owner.metadata.uid == ref.uid else None


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
