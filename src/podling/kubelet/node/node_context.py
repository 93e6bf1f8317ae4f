"""What all pod workers of a node share. Built once, by the kubelet."""

from __future__ import annotations

from dataclasses import dataclass

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.interface import Runtime
from podling.kubelet.config import KubeletConfig
from podling.kubelet.gates import Gates
from podling.kubelet.node.cgroups import Cgroups
from podling.kubelet.node.node_facts import NodeFacts
from podling.kubelet.pod.object_source import ObjectSource
from podling.kubelet.pulling.images import Images
from podling.model.time import Clock


@dataclass(frozen=True, slots=True)
class NodeContext:
    config: KubeletConfig
    facts: NodeFacts
    client: Client
    runtime: Runtime
    images: Images
    objects: ObjectSource
    events: EventRecorder
    cgroups: Cgroups
    gates: Gates
    clock: Clock
