"""Which node a pod gets, or why none. Pure: it reads the cluster and changes nothing.

`Evaluations` keeps what each node answered to pods of one shape until the node changes: the pods of one
workload ask every node the same question, and between two of them one node has changed. Only answers of a
node by itself are kept; what depends on the cluster is computed each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple, Protocol

import msgspec

from podling.scheduler.cluster import Cluster
from podling.scheduler.filter import Refusal, refuse
from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.pod_affinity import affinity_state
from podling.scheduler.score import Rating, best, rate
from podling.scheduler.topology_spread import spread_state
from podling.scheduler.volume_limits import volume_limits
from podling.scheduler.volumes import volume_state

SHAPES = 64
"""Pod shapes whose evaluations are kept; the one not seen for longest is dropped."""


class Evaluation(NamedTuple):
    """A node's refusal or its rating, valid as long as the node has this generation."""

    generation: int
    refusal: Refusal | None
    rating: Rating | None


class Evaluations:
    def __init__(self) -> None:
        self._shapes: OrderedDict[Hashable, dict[str, Evaluation]] = OrderedDict()

    def of(self, pod: PodInfo, nodes: Mapping[str, NodeInfo]) -> Iterator[tuple[NodeInfo, Evaluation]]:
        """The evaluations of `pod` by all `nodes`, in order."""
        shape = pod.shape()
        known = self._shapes.setdefault(shape, {})
        self._shapes.move_to_end(shape)
        if len(self._shapes) > SHAPES:
            self._shapes.popitem(last=False)
        if len(known) > len(nodes):
            for gone in known.keys() - nodes.keys():
                del known[gone]
        for name, node in nodes.items():
            evaluation = known.get(name)
            if evaluation is None or evaluation.generation != node.generation:
                evaluation = known[name] = evaluate(pod, node)
            yield node, evaluation


def evaluate(pod: PodInfo, node: NodeInfo) -> Evaluation:
    refusal = refuse(pod, node)
    return Evaluation(node.generation, refusal, None if refusal else rate(pod, node))


class ClusterFilter(Protocol):
    """A filter that depends on the whole cluster, prepared for one pod."""

    def refuse(self, node: NodeInfo) -> Refusal | None: ...

    def moved(self, other: PodInfo, node: NodeInfo, sign: int) -> None: ...

    def clone(self) -> ClusterFilter: ...


class Decision(msgspec.Struct, frozen=True):
    """The chosen node, or None with the refusal of every node."""

    node: NodeInfo | None
    refusals: Mapping[str, Refusal] = msgspec.field(default_factory=dict)


class Cycle(msgspec.Struct, frozen=True):
    """One pod to be scheduled and its cluster filters."""

    pod: PodInfo
    filters: tuple[ClusterFilter, ...]

    def refuse(self, node: NodeInfo) -> Refusal | None:
        """The first refusal of the cluster filters. The node's own filters are asked before."""
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
    """One node on which pods are added and removed to see what would fit, without changing the cluster."""

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
    storage = cluster.storage
    volumes = volume_state(pod, storage, cluster.claimed) if storage is not None else None
    limits = volume_limits(pod, storage) if storage is not None else None
    found = (limits, volumes, spread_state(pod, cluster), affinity_state(pod, cluster))
    return Cycle(pod, tuple(state for state in found if state is not None))


def decide(pod: PodInfo, cluster: Cluster, evaluations: Evaluations) -> Decision:
    """The node that the pod is nominated to if it fits there, else the best one."""
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
    """As `Cycle.refuse`, and also when the pods nominated to the node, of the same or higher priority, are
    counted on it."""
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
    """The pods nominated to the node whose priority is not lower than that of `pod`."""
    promised = cluster.nominated.get(node.name)
    if not promised:
        return []
    return [other for other in promised.values() if other.priority >= pod.priority and other.uid != pod.uid]
