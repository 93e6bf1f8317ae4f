"""The objects that volumes are made of: which ConfigMaps, Secrets and tokens a pod needs, and watching them.

`WatchedObjects` has one watch for each object by its name, shared by all pods of the node, as the node
authorizer permits no wider watch. `Sources` follows the objects of one pod. It compares resourceVersions with
those the files were written from, so that an event about what is already on disk causes no work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from podling.client.client import Client
from podling.client.informer import Informer
from podling.kubelet.volumes.files import secret_name_of
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from podling.model.types.volume import ServiceAccountTokenProjection, Volume, VolumeProjection

DEFAULT_TOKEN_SECONDS = 3600


class TokenKey(NamedTuple):
    """What a token is requested for; projections with equal keys share one. "" is the API server's
    audience."""

    audience: str
    seconds: int


class Objects(msgspec.Struct, frozen=True):
    """The objects of one pod's volumes, by name; one that is missing here does not exist."""

    config_maps: dict[str, ConfigMap] = msgspec.field(default_factory=dict)
    secrets: dict[str, Secret] = msgspec.field(default_factory=dict)
    tokens: dict[TokenKey, str] = msgspec.field(default_factory=dict)


def referenced_config_maps(volumes: Iterable[Volume]) -> set[str]:
    return {name for volume in volumes for name in _config_maps(volume)}


def referenced_secrets(volumes: Iterable[Volume]) -> set[str]:
    return {name for volume in volumes for name in _secrets(volume)}


def referenced_tokens(volumes: Iterable[Volume]) -> set[TokenKey]:
    return {
        token_key(source.service_account_token)
        for volume in volumes
        for source in _projections(volume)
        if source.service_account_token is not None
    }


def token_key(source: ServiceAccountTokenProjection) -> TokenKey:
    return TokenKey(source.audience, source.expiration_seconds or DEFAULT_TOKEN_SECONDS)


def tells_of_pod(volume: Volume) -> bool:
    """Whether the volume shows fields of the pod (downwardAPI)."""
    joined = any(source.downward_api is not None for source in _projections(volume))
    return joined or volume.downward_api is not None


def _projections(volume: Volume) -> Iterable[VolumeProjection]:
    return volume.projected.sources if volume.projected else ()


def _config_maps(volume: Volume) -> Iterator[str]:
    if volume.config_map is not None:
        yield volume.config_map.name
    for source in _projections(volume):
        if source.config_map is not None:
            yield source.config_map.name


def _secrets(volume: Volume) -> Iterator[str]:
    if volume.secret is not None:
        yield secret_name_of(volume.secret)
    for source in _projections(volume):
        if source.secret is not None:
            yield secret_name_of(source.secret)


T = TypeVar("T", bound=KubeObject)


class ObjectKey(NamedTuple):
    type: type[ConfigMap] | type[Secret]
    namespace: str
    name: str


Changed = Callable[[ObjectKey, KubeObject | None], None]
"""Called on the event loop with the new object, None when it was deleted."""


class _Watch(msgspec.Struct):
    task: asyncio.Task[None]
    followers: list[Changed] = msgspec.field(default_factory=list)


class WatchedObjects:
    """One watch for each followed ConfigMap and Secret. `tasks` owns the watches."""

    def __init__(self, client: Client, tasks: asyncio.TaskGroup) -> None:
        self._client = client
        self._tasks = tasks
        self._watches: dict[ObjectKey, _Watch] = {}

    def follow(self, key: ObjectKey, changed: Changed) -> None:
        """Call `changed` at each change; the first follower is also called with the present object."""
        if key not in self._watches:
            self._watches[key] = _Watch(self._begin(key.type, key))
        self._watches[key].followers.append(changed)

    def leave(self, key: ObjectKey, changed: Changed) -> None:
        watch = self._watches[key]
        watch.followers.remove(changed)
        if not watch.followers:
            watch.task.cancel()
            del self._watches[key]

    def _begin(self, type_: type[T], key: ObjectKey) -> asyncio.Task[None]:
        selector = f"metadata.name={key.name}"
        informer = Informer(self._client, type_, key.namespace, field_selector=selector)
        informer.subscribe(partial(self._tell, key))
        return self._tasks.create_task(informer.run(), name=f"watch {key.type.__name__} {key.name}")

    def _tell(self, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        for changed in tuple(self._watches[key].followers):
            changed(key, new)


MISSING = ""


class Sources:
    """Follows the objects of one pod's volumes; `changed` is called if one differs from what is on disk."""

    def __init__(self, watched: WatchedObjects, changed: Callable[[], None]) -> None:
        self._watched = watched
        self._changed = changed
        self._versions: dict[ObjectKey, str] = {}

    @property
    def followed(self) -> bool:
        return bool(self._versions)

    def follow(self, pod: Pod, found: Objects) -> None:
        """Follow the pod's objects from the versions in `found` on; immutable ones are not followed."""
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
    """The resourceVersion of each object that may change, MISSING if it does not exist."""
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
