"""The ConfigMaps and Secrets that pods refer to, read from the API server when they are needed.

They are read each time a pod starts or a container with references is created, so that a pod gets what a user
has just written. An object that does not exist is an answer, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from podling.client.client import Client
from podling.kubelet.volumes.objects import Objects, referenced_config_maps, referenced_secrets
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod

T = TypeVar("T", bound=KubeObject)


class ObjectSource:
    """Every method raises StatusError or OSError when the server cannot say."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def for_volumes(self, pod: Pod) -> Objects:
        namespace, volumes = pod.metadata.namespace, pod.spec.volumes
        return await self.named(namespace, referenced_config_maps(volumes), referenced_secrets(volumes))

    async def named(self, namespace: str, config_maps: Iterable[str], secrets: Iterable[str]) -> Objects:
        # One after the other: most pods ask for nothing, and then this gives nobody else a turn.
        found_maps = await self._several(ConfigMap, namespace, config_maps)
        return Objects(found_maps, await self._several(Secret, namespace, secrets))

    async def pull_secrets(self, pod: Pod) -> list[Mapping[str, bytes]]:
        """The data of the pod's pull secrets that exist, in its order."""
        names = [reference.name for reference in pod.spec.image_pull_secrets]
        found = await self._several(Secret, pod.metadata.namespace, names)
        return [found[name].data for name in names if name in found]

    async def _several(self, type_: type[T], namespace: str, names: Iterable[str]) -> dict[str, T]:
        found = {name: await self._find(type_, namespace, name) for name in sorted(set(names))}
        return {name: obj for name, obj in found.items() if obj is not None}

    async def _find(self, type_: type[T], namespace: str, name: str) -> T | None:
        try:
            return await self._client.get(type_, name, namespace)
        except StatusError as error:
            if error.code == 404:
                return None
            raise
