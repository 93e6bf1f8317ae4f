"""What all pod workers of a node share. Built once, by the kubelet."""

from __future__ import annotations

import msgspec

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.interface import Runtime
from podling.kubelet.config import KubeletConfig
from podling.kubelet.container_counts import ContainerCounts
from podling.kubelet.eviction.node_pressure import NodePressure
from podling.kubelet.metrics.pod_counts import PodCounts
from podling.kubelet.node.allocations import Allocations
from podling.kubelet.node.cgroups import Cgroups
from podling.kubelet.node.known_features import KnownFeatures
from podling.kubelet.node.node import NodeReporter
from podling.kubelet.node.node_facts import NodeFacts
from podling.kubelet.node.node_services import NodeServices
from podling.kubelet.pod.object_source import ObjectSource
from podling.kubelet.pulling.images import Images
from podling.kubelet.volumes.watched_objects import WatchedObjects
from podling.model.time import Clock


class NodeContext(msgspec.Struct, frozen=True):
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
