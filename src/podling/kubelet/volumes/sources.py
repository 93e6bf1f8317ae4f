"""The objects one pod's volumes are made of, followed so that the volumes can follow them.

What was laid out is remembered by its resourceVersion: news of what is there already is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podling.kubelet.volumes.objects import Objects, referenced_config_maps, referenced_secrets
from podling.kubelet.volumes.watched_objects import ObjectKey, WatchedObjects
from podling.model.config import ConfigMap, Secret
from podling.model.meta import KubeObject
from podling.model.pod import Pod

MISSING = ""


class Sources:
    """`changed` is called when one of them is another than what was last laid out."""

    def __init__(self, watched: WatchedObjects, changed: Callable[[], None]) -> None:
        self._watched = watched
        self._changed = changed
        self._versions: dict[ObjectKey, str] = {}

    @property
    def followed(self) -> bool:
        return bool(self._versions)

    def follow(self, pod: Pod, found: Objects) -> None:
        """From what was found on. An object that says it will never change is not followed."""
        wanted = _versions(pod, found)
        for key in self._versions.keys() - wanted.keys():
            self._watched.leave(key, self._heard)
        new = wanted.keys() - self._versions.keys()
        self._versions = wanted
        for key in new:
            self._watched.follow(key, self._heard)

    def leave_all(self) -> None:
        for key in self._versions:
            self._watched.leave(key, self._heard)
        self._versions = {}

    def _heard(self, key: ObjectKey, new: KubeObject | None) -> None:
        version = MISSING if new is None else new.metadata.resource_version
        if version != self._versions.get(key):
            self._changed()


def _versions(pod: Pod, found: Objects) -> dict[ObjectKey, str]:
    """Of each object that may change, the version it was found in."""
    namespace, volumes = pod.metadata.namespace, pod.spec.volumes
    versions: dict[ObjectKey, str] = {}
    kinds: tuple[tuple[type[ConfigMap] | type[Secret], set[str], Mapping[str, ConfigMap | Secret]], ...] = (
        (ConfigMap, referenced_config_maps(volumes), found.config_maps),
        (Secret, referenced_secrets(volumes), found.secrets),
    )
    for type_, names, objects in kinds:
        for name in names:
            obj = objects.get(name)
            if obj is None or not obj.immutable:
                versions[ObjectKey(type_, namespace, name)] = (
                    obj.metadata.resource_version if obj else MISSING
                )
    return versions
