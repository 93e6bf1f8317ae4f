"""What the scheduler knows of one node: the node, what runs there, and what is still free. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.resources import pod_requests

PODS = "pods"
FINISHED = ("Succeeded", "Failed")
ZERO = Quantity("0")


@dataclass(slots=True)
class NodeInfo:
    """A node with the pods assigned to it. `requested` is kept as pods come and go."""

    node: Node
    pods: dict[str, Pod] = field(default_factory=dict)
    requested: dict[str, Quantity] = field(default_factory=dict)

    def add(self, pod: Pod) -> None:
        self.remove(pod)
        if pod.status.phase in FINISHED:
            return
        self.pods[pod.metadata.uid] = pod
        self._count(pod, 1)

    def remove(self, pod: Pod) -> None:
        known = self.pods.pop(pod.metadata.uid, None)
        if known is not None:
            self._count(known, -1)

    def allocatable(self, resource: str) -> Quantity:
        return self.node.status.allocatable.get(resource, ZERO)

    def shortages(self, requests: Mapping[str, Quantity]) -> Iterable[str]:
        """The resources of `requests` this node has too little of left."""
        if Quantity(len(self.pods) + 1) > self.allocatable(PODS):
            yield PODS
        for resource, wanted in requests.items():
            used = self.requested.get(resource, ZERO)
            if wanted.nanos and used.nanos + wanted.nanos > self.allocatable(resource).nanos:
                yield resource

    def _count(self, pod: Pod, sign: int) -> None:
        for resource, amount in pod_requests(pod).items():
            before = self.requested.get(resource, ZERO)
            self.requested[resource] = Quantity.of_nanos(before.nanos + sign * amount.nanos, amount.format)
