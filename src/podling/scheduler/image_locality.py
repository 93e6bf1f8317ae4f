"""How much of what a pod's containers need is on a node already. Pure.

What few nodes have counts for little: else the first node to pull an image would get all pods that use it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from podling.scheduler.cluster import Cluster
from podling.scheduler.node_info import NodeInfo
from podling.scheduler.pod_info import PodInfo

MOST = 100
MIB = 1024 * 1024
TOO_LITTLE, PLENTY = 23 * MIB, 1000 * MIB
"""Bytes: what is not worth counting, and what is all that counts, of each container."""


def locality_scores(pod: PodInfo, cluster: Cluster, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """None when no node has any of the pod's images, or none that counts."""
    sizes = [0] * len(nodes)
    for image in pod.images:
        if share := cluster.having[image] / len(cluster.nodes):
            there = (int(node.images.get(image, 0) * share) for node in nodes)
            sizes = list(map(operator.add, sizes, there))
    if max(sizes) <= TOO_LITTLE:
        return None
    # Nodes have the same images in the same sizes, mostly.
    scores = {size: _score(size, len(pod.images)) for size in set(sizes)}
    return [scores[size] for size in sizes]


def _score(size: int, containers: int) -> int:
    most = PLENTY * containers
    return MOST * (min(max(size, TOO_LITTLE), most) - TOO_LITTLE) // (most - TOO_LITTLE)
