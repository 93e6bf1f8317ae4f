"""Which of the nodes a pod may run on it should run on. Pure; a score is 0 to 100, higher is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.resources import pod_requests
from podling.scheduler.filter import matches
from podling.scheduler.node_info import ZERO, NodeInfo

BEST = 100
WEIGHED = ("cpu", "memory")


def best(pod: Pod, candidates: Iterable[NodeInfo]) -> NodeInfo:
    """The node with the highest score; among equals the one with fewer pods, then by name."""
    requests = pod_requests(pod)
    return max(
        candidates,
        key=lambda info: (
            least_allocated(requests, info) + preferred(pod, info),
            -len(info.pods),
            info.node.metadata.name,
        ),
    )


def least_allocated(requests: Mapping[str, Quantity], info: NodeInfo) -> float:
    """How much of the node would stay free, averaged over CPU and memory."""
    return sum(_free(resource, requests, info) for resource in WEIGHED) / len(WEIGHED)


def preferred(pod: Pod, info: NodeInfo) -> float:
    """The share of the pod's preferred node affinity, by weight, that the node meets."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else []
    total = sum(term.weight for term in terms)
    met = sum(term.weight for term in terms if matches(term.preference, info.node))
    return BEST * met / total if total else 0


def _free(resource: str, requests: Mapping[str, Quantity], info: NodeInfo) -> float:
    capacity = info.allocatable(resource).nanos
    used = info.requested.get(resource, ZERO).nanos + requests.get(resource, ZERO).nanos
    return BEST * (capacity - used) / capacity if 0 < used <= capacity or (capacity and not used) else 0
