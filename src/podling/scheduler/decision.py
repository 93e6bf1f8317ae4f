"""Where a pod goes, or why it goes nowhere. Pure: reads the cluster as it is and changes nothing.

What each node answered to a pod of some shape, kept until the node changes.

Pods come in herds: one workload's pods ask every node the same question, and between two of them one node has
changed. Only what a node answers by itself is kept; what depends on the cluster is asked each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple, Protocol

import msgspec

from podling.scheduler.cluster import Cluster
from podling.scheduler.filter import refuse
from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.pod_affinity import affinity_state
from podling.scheduler.refusal import Refusal
from podling.scheduler.score import Rating, best, rate
from podling.scheduler.topology_spread import spread_state

SHAPES = 64
"""Shapes remembered; the one not seen for longest is forgotten."""


class Evaluation(NamedTuple):
    """Either a refusal or a rating, true of the node as long as it has this generation."""

    generation: int
    refusal: Refusal | None
    rating: Rating | None


class Evaluations:
    def __init__(self) -> None:
        self._shapes: OrderedDict[Hashable, dict[str, Evaluation]] = OrderedDict()

    def of(self, pod: PodInfo, nodes: Mapping[str, NodeInfo]) -> Iterator[tuple[NodeInfo, Evaluation]]:
        """Of every node, in order."""
        known = self._remembered(pod.shape())
        if len(known) > len(nodes):
            for gone in known.keys() - nodes.keys():
                del known[gone]
        for name, node in nodes.items():
            evaluation = known.get(name)
            if evaluation is None or evaluation.generation != node.generation:
                evaluation = known[name] = evaluate(pod, node)
            yield node, evaluation

    def _remembered(self, shape: Hashable) -> dict[str, Evaluation]:
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = {}
            if len(self._shapes) > SHAPES:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(shape)
        return known


def evaluate(pod: PodInfo, node: NodeInfo) -> Evaluation:
    refusal = refuse(pod, node)
    return Evaluation(node.generation, refusal, None if refusal else rate(pod, node))


class ClusterFilter(Protocol):
    """A filter that looks at the whole cluster, for one pod."""

    def refuse(self, node: NodeInfo) -> Refusal | None: ...

    def moved(self, other: PodInfo, node: NodeInfo, sign: int) -> None: ...

    def clone(self) -> ClusterFilter: ...


class Decision(msgspec.Struct, frozen=True):
    """`node` is None when every node is among the `refusals`."""

    node: NodeInfo | None
    refusals: Mapping[str, Refusal] = msgspec.field(default_factory=dict)


class Cycle(msgspec.Struct, frozen=True):
    """One pod and what stands against it in the cluster: asked about each node, and what if."""

    pod: PodInfo
    filters: tuple[ClusterFilter, ...]

    def refuse(self, node: NodeInfo) -> Refusal | None:
        """By the cluster alone; what the node itself says is asked before."""
        for check in self.filters:
            refusal = check.refuse(node)
            if refusal is not None:
                return refusal
        return None

    def moved(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        for check in self.filters:
            check.moved(other, node, sign)

    def clone(self) -> Cycle:
        return Cycle(self.pod, tuple(check.clone() for check in self.filters))


class WhatIf:
    """One node on which pods are tried, apart from the cluster."""

    def __init__(self, cycle: Cycle, node: NodeInfo) -> None:
        self._cycle, self._node = cycle.clone(), node.clone()

    def add(self, other: PodInfo) -> None:
        self._node.add(other)
        self._cycle.moved(other, self._node, 1)

    def remove(self, other: PodInfo) -> None:
        self._node.remove(other.uid)
        self._cycle.moved(other, self._node, -1)

    def refuse(self) -> Refusal | None:
        return refuse(self._cycle.pod, self._node) or self._cycle.refuse(self._node)


def cycle_of(pod: PodInfo, cluster: Cluster) -> Cycle:
    found = (spread_state(pod, cluster), affinity_state(pod, cluster))
    return Cycle(pod, tuple(state for state in found if state is not None))


def decide(pod: PodInfo, cluster: Cluster, evaluations: Evaluations) -> Decision:
    """The node the pod was promised if it fits there, else the best."""
    cycle = cycle_of(pod, cluster)
    promised = cluster.nomination_of(pod.uid)
    refusals: dict[str, Refusal] = {}
    fitting: list[NodeInfo] = []
    ratings: list[Rating] = []
    for node, (_, refusal, rating) in evaluations.of(pod, cluster.nodes):
        if refusal is None and (cycle.filters or node.name in cluster.nominated):
            refusal = refuse_in_cluster(cycle, node, cluster)
        if refusal is not None:
            refusals[node.name] = refusal
        elif rating is not None:
            if node.name == promised:
                return Decision(node)
            fitting.append(node)
            ratings.append(rating)
    return Decision(best(pod, cluster, fitting, ratings) if fitting else None, refusals)


def refuse_in_cluster(cycle: Cycle, node: NodeInfo, cluster: Cluster) -> Refusal | None:
    """Also when the pods that were promised room there, and matter as much, have come."""
    refusal = cycle.refuse(node)
    if refusal is not None:
        return refusal
    promised = promised_before(cycle.pod, node, cluster)
    if not promised:
        return None
    what_if = WhatIf(cycle, node)
    for other in promised:
        what_if.add(other)
    return what_if.refuse()


def promised_before(pod: PodInfo, node: NodeInfo, cluster: Cluster) -> list[PodInfo]:
    """Who was promised room on the node and is no less important than `pod`."""
    promised = cluster.nominated.get(node.name)
    if not promised:
        return []
    return [other for other in promised.values() if other.priority >= pod.priority and other.uid != pod.uid]
