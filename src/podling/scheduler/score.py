"""Scores: which of the nodes that can take a pod is best. Pure. Each score is 0 to 100, higher is better, and
has kube-scheduler's weight.

ImageLocality counts the images of the pod's containers that a node has. An image that few nodes have counts
for little: else the first node that pulled it would get all pods that use it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

from podling.scheduler.cluster import Cluster
from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.node_match import avoided, preferred_weight
from podling.scheduler.pod_affinity import affinity_scores
from podling.scheduler.topology_spread import spread_scores

MOST = 100
MIB = 1024 * 1024
TOO_LITTLE, PLENTY = 23 * MIB, 1000 * MIB
"""Bytes for each container: images below the first count as nothing, above the second no higher."""
TAINTS, NODE_AFFINITY, SPREAD, POD_AFFINITY, IMAGES = 3, 2, 2, 2, 1
"""Weights; least-allocated and balanced weigh 1 each."""


def locality_scores(pod: PodInfo, cluster: Cluster, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """ImageLocality; None when no node has an image of the pod that counts."""
    sizes = [0] * len(nodes)
    for image in pod.images:
        if share := cluster.having[image] / len(cluster.nodes):
            there = (int(node.images.get(image, 0) * share) for node in nodes)
            sizes = list(map(operator.add, sizes, there))
    if max(sizes) <= TOO_LITTLE:
        return None
    # Nodes have the same images in the same sizes, mostly.
    most = PLENTY * len(pod.images)
    scores = {
        size: MOST * (min(max(size, TOO_LITTLE), most) - TOO_LITTLE) // (most - TOO_LITTLE)
        for size in set(sizes)
    }
    return [scores[size] for size in sizes]


class Rating(NamedTuple):
    """The score of a node by itself. `avoided` and `preferred` are raw counts, comparable only with other
    nodes'."""

    room: int
    avoided: int
    preferred: int


def rate(pod: PodInfo, node: NodeInfo) -> Rating:
    spec = pod.pod.spec
    return Rating(
        least_allocated(pod, node) + (balanced(pod, node) if pod.requests else 0),
        avoided(node.node.spec.taints, spec.tolerations),
        preferred_weight(spec, node.node),
    )


def best(pod: PodInfo, cluster: Cluster, nodes: Sequence[NodeInfo], ratings: Sequence[Rating]) -> NodeInfo:
    """The best of `nodes` (not empty) by their `ratings` and the cluster's scores. Among equals, the one with
    fewer pods, then the first."""
    totals = [rating.room for rating in ratings]
    _add(totals, TAINTS, _normalized([rating.avoided for rating in ratings], lower_is_better=True))
    _add(totals, NODE_AFFINITY, _normalized([rating.preferred for rating in ratings]))
    _add(totals, SPREAD, spread_scores(pod, cluster, nodes))
    _add(totals, POD_AFFINITY, affinity_scores(pod, cluster, nodes))
    _add(totals, IMAGES, locality_scores(pod, cluster, nodes))
    return nodes[max(range(len(nodes)), key=lambda i: (totals[i], -len(nodes[i].pods)))]


def least_allocated(pod: PodInfo, node: NodeInfo) -> int:
    """The share of CPU and memory that would stay free, averaged."""
    cpu = _free(node.cpu + pod.cpu, node.allocatable.get("cpu", 0))
    return (cpu + _free(node.memory + pod.memory, node.allocatable.get("memory", 0))) // 2


def balanced(pod: PodInfo, node: NodeInfo) -> int:
    """How equal the used shares of CPU and memory would be."""
    cpu = _share(node, pod, "cpu")
    return int(MOST * (1 - abs(cpu - _share(node, pod, "memory")) / 2))


def _free(used: int, capacity: int) -> int:
    return (capacity - used) * MOST // capacity if used <= capacity and capacity else 0


def _share(node: NodeInfo, pod: PodInfo, resource: str) -> float:
    used = node.requested.get(resource, 0) + pod.requests.get(resource, 0)
    capacity = node.allocatable.get(resource, 0)
    return min(used / capacity, 1.0) if capacity else 1.0


def _normalized(raw: Sequence[int], *, lower_is_better: bool = False) -> list[int] | None:
    """Scaled to 0 to 100; None when all are 0, because such a score is the same everywhere."""
    most = max(raw)
    if not most:
        return None
    scores = [MOST * value // most for value in raw]
    return [MOST - score for score in scores] if lower_is_better else scores


def _add(totals: list[int], weight: int, scores: Sequence[int] | None) -> None:
    if scores is not None:
        for index, score in enumerate(scores):
            totals[index] += weight * score
