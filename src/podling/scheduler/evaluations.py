"""What each node answered to a pod of some shape, kept until the node changes.

Pods come in herds: one workload's pods ask every node the same question, and between two of them one node has
changed. Only what a node answers by itself is kept; what depends on the cluster is asked each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from podling.scheduler.filter import refuse
from podling.scheduler.node_info import NodeInfo
from podling.scheduler.pod_info import PodInfo
from podling.scheduler.refusal import Refusal
from podling.scheduler.score import Rating, rate

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
