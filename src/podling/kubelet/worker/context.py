"""The parts of the node that all pod workers share. Built once, by the kubelet."""

from __future__ import annotations

import msgspec

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.interface import Runtime
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.cgroups import Cgroups
from podling.kubelet.images.images import Images
from podling.kubelet.metrics.counters import ContainerCounts, PodCounts
from podling.kubelet.node.allocations import Allocations
from podling.kubelet.node.features import KnownFeatures
from podling.kubelet.node.pressure import NodePressure
from podling.kubelet.node.reporter import NodeReporter
from podling.kubelet.node.services import NodeServices
from podling.kubelet.pod.node_facts import NodeFacts
from podling.kubelet.volumes.objects import WatchedObjects
from podling.kubelet.worker.objects import ObjectSource
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
