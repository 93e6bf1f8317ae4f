"""What the scheduler knows of one node: the node, what runs there, and what is still free. Pure."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping

from podling.model.host_ports import HostPort
from podling.model.node import Node
from podling.scheduler.pod_info import NANO, PodInfo

PODS = "pods"

_generations = itertools.count(1)


class NodeInfo:
    """A node with the pods assigned to it. Sums are kept as pods come and go, in nanos.

    `generation` is a number no node has had before, taken at each change: who remembers it with an answer
    knows whether the answer still holds.
    """

    __slots__ = (
        "allocatable",
        "cpu",
        "generation",
        "images",
        "labels",
        "memory",
        "name",
        "node",
        "pods",
        "ports",
        "requested",
    )

    node: Node
    name: str
    labels: Mapping[str, str]
    allocatable: dict[str, int]
    images: dict[str, int]
    """Name → bytes."""

    def __init__(self, node: Node) -> None:
        self.pods: dict[str, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.cpu = 0
        self.memory = 0
        self.ports: Counter[HostPort] = Counter()
        self.set_node(node)

    def set_node(self, node: Node) -> None:
        self.node = node
        self.name = node.metadata.name
        self.labels = node.metadata.labels
        self.allocatable = {name: amount.nanos for name, amount in node.status.allocatable.items()}
        self.images = {name: image.size_bytes for image in node.status.images for name in image.names}
        self.generation = next(_generations)

    def add(self, pod: PodInfo) -> None:
        self.remove(pod.uid)
        self.pods[pod.uid] = pod
        self._count(pod, 1)
        self.ports.update(pod.ports)

    def remove(self, uid: str) -> None:
        known = self.pods.pop(uid, None)
        if known is not None:
            self._count(known, -1)
            self.ports -= Counter(known.ports)

    def clone(self) -> NodeInfo:
        """To try on what would be if other pods ran there."""
        twin = NodeInfo(self.node)
        twin.pods, twin.requested, twin.ports = dict(self.pods), dict(self.requested), self.ports.copy()
        twin.cpu, twin.memory = self.cpu, self.memory
        return twin

    def shortages(self, pod: PodInfo) -> Iterator[str]:
        """The resources `pod` asks for that this node has too little of left."""
        if (len(self.pods) + 1) * NANO > self.allocatable.get(PODS, 0):
            yield PODS
        for resource, wanted in pod.requests.items():
            if wanted > self.allocatable.get(resource, 0) - self.requested.get(resource, 0):
                yield resource

    def _count(self, pod: PodInfo, sign: int) -> None:
        for resource, amount in pod.requests.items():
            self.requested[resource] = self.requested.get(resource, 0) + sign * amount
        self.cpu += sign * pod.cpu
        self.memory += sign * pod.memory
        self.generation = next(_generations)
