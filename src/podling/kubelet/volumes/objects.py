"""The objects that volumes are made of: which ConfigMaps, Secrets and tokens a pod needs, watches of the
objects, and requests for the tokens.

`WatchedObjects` has one watch for each object by its name, shared by all pods of the node, as the node
authorizer permits no wider watch. `Sources` follows the objects of one pod. It compares resourceVersions with
those the files were written from, so that an event about what is already on disk causes no work.

`PodTokens` gets the service account tokens of one pod with the TokenRequest API, keeps and renews them: as in
Kubernetes, after 80 % of a token's lifetime or 24 hours. If renewing fails, the old token is used until it
expires.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import msgspec

from podling.client.client import Client
from podling.client.informer import Informer
from podling.kubelet.volumes.files import secret_name_of
from podling.model.errors import StatusError
from podling.model.time import Clock, parse_time
from podling.model.types.core import (
    BoundObjectReference,
    ConfigMap,
    Secret,
    ServiceAccount,
    TokenRequest,
    TokenRequestSpec,
)
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.persistent_volume import PersistentVolume
from podling.model.types.pod import Pod
from podling.model.types.volume import ServiceAccountTokenProjection, Volume, VolumeProjection

DEFAULT_TOKEN_SECONDS = 3600
LONGEST_USE = timedelta(hours=24)
RENEWED_AFTER = 0.8
"""Of a token's lifetime."""
RETRY = timedelta(minutes=1)
log = logging.getLogger(__name__)

MISSING = ""
"""The resourceVersion of an object that does not exist."""

T = TypeVar("T", bound=KubeObject)


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
    volumes: dict[str, PersistentVolume] = msgspec.field(default_factory=dict)
    """By the names of the pod's volumes that are claimed."""


def referenced_config_maps(volumes: Iterable[Volume]) -> set[str]:
    """The names of the ConfigMaps that these volumes show, alone or projected."""
    return {
        source.name
        for volume in volumes
        for source in (volume.config_map, *(joined.config_map for joined in _projections(volume)))
        if source is not None
    }


def referenced_secrets(volumes: Iterable[Volume]) -> set[str]:
    """The names of the Secrets that these volumes show, alone or projected."""
    return {
        secret_name_of(source)
        for volume in volumes
        for source in (volume.secret, *(joined.secret for joined in _projections(volume)))
        if source is not None
    }


def referenced_tokens(volumes: Iterable[Volume]) -> set[TokenKey]:
    """The tokens that these volumes project; equal requests once."""
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


class ObjectKey(NamedTuple):
    """The object that is watched."""

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
        def tell(old: KubeObject | None, new: KubeObject | None) -> None:
            for changed in tuple(self._watches[key].followers):
                changed(key, new)

        selector = f"metadata.name={key.name}"
        informer = Informer(self._client, type_, key.namespace, field_selector=selector)
        informer.subscribe(tell)
        return self._tasks.create_task(informer.run(), name=f"watch {key.type.__name__} {key.name}")


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


class _Token(msgspec.Struct, frozen=True):
    text: str
    renew_at: datetime
    ends_at: datetime


def renewal_time(ends_at: datetime, life: timedelta) -> datetime:
    born = ends_at - life
    return born + min(life * RENEWED_AFTER, LONGEST_USE)


class PodTokens:
    """The tokens of one pod."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._tokens: dict[TokenKey, _Token] = {}

    @property
    def renew_at(self) -> datetime | None:
        """The earliest time at which a token is to be renewed; None without tokens."""
        return min((token.renew_at for token in self._tokens.values()), default=None)

    def expires(self, key: TokenKey) -> datetime:
        """When the token that `get` has returned does."""
        return self._tokens[key].ends_at

    async def get(self, pod: Pod, key: TokenKey) -> str:
        """A valid token, renewed if due. Raises StatusError or OSError if there is none."""
        known, now = self._tokens.get(key), self._clock.now()
        if known is not None and now < known.renew_at:
            return known.text
        try:
            made = self._tokens[key] = await self._request(pod, key)
        except (StatusError, OSError) as error:
            if known is None or now >= known.ends_at:
                raise
            log.warning("the token of pod %s cannot be renewed: %s", pod.metadata.uid, error)
            made = self._tokens[key] = _Token(known.text, now + RETRY, known.ends_at)
        return made.text

    async def _request(self, pod: Pod, key: TokenKey) -> _Token:
        account, meta = pod.spec.service_account_name, pod.metadata
        request = TokenRequest(
            metadata=ObjectMeta(name=account, namespace=meta.namespace),
            spec=TokenRequestSpec(
                audiences=[key.audience] if key.audience else [],
                expiration_seconds=key.seconds,
                bound_object_ref=BoundObjectReference("Pod", "v1", meta.name, meta.uid),
            ),
        )
        answer = await self._client.ask(ServiceAccount, account, "token", request)
        ends_at = parse_time(answer.status.expiration_timestamp or "")
        # The server may have chosen another life than was asked for.
        life = timedelta(seconds=answer.spec.expiration_seconds or key.seconds)
        return _Token(answer.status.token, renewal_time(ends_at, life), ends_at)
