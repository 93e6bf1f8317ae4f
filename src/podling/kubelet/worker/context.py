"""What all pod workers share: the parts of the node, and the objects that pods refer to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.interface import Runtime
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.cgroups import Cgroups
from podling.kubelet.images.images import Images
from podling.kubelet.metrics.counters import ContainerCounts, PodCounts
from podling.kubelet.node.reporter import NodeReporter
from podling.kubelet.node.shared import Allocations, KnownFeatures, NodePressure, NodeServices
from podling.kubelet.pod.sandbox import NodeFacts
from podling.kubelet.volumes.csi_mounts import CsiMounts
from podling.kubelet.volumes.objects import (
    Objects,
    WatchedObjects,
    referenced_config_maps,
    referenced_secrets,
)
from podling.model.errors import StatusError
from podling.model.time import Clock
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod

T = TypeVar("T", bound=KubeObject)

Admit = Callable[[Pod, Sequence[str]], Awaitable[str]]
"""Called with the addresses of a pod's sandbox before a container starts in it: returns once the network's
policies hold for them, and otherwise says why they do not."""


async def admit_all(pod: Pod, addresses: Sequence[str]) -> str:
    """Where policies are no matter of podling's."""
    return ""


class ObjectSource:
    """The ConfigMaps and Secrets that pods refer to. They are read from the API server each time a pod starts
    or a container with references is created, so that a pod gets what a user has just written. Every method
    raises StatusError or OSError when the server cannot say."""

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
        found: dict[str, T] = {}
        for name in sorted(set(names)):
            try:
                found[name] = await self._client.get(type_, name, namespace)
            except StatusError as error:
                # An object that does not exist is an answer, not an error.
                if error.code != 404:
                    raise
        return found


class NodeContext(msgspec.Struct, frozen=True):
    """The parts of the node. Built once, by the kubelet."""

    config: KubeletConfig
    facts: NodeFacts
    client: Client
    runtime: Runtime
    features: KnownFeatures
    images: Images
    objects: ObjectSource
    services: NodeServices
    watched: WatchedObjects
    events: EventRecorder
    cgroups: Cgroups
    allocations: Allocations
    own_object: NodeReporter
    counts: ContainerCounts
    pod_counts: PodCounts
    pressure: NodePressure
    clock: Clock
    csi: CsiMounts
    admit: Admit = admit_all
