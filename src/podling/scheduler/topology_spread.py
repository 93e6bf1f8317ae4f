"""PodTopologySpread: how evenly pods are spread over the domains of a topology. Pure.

A `SpreadState` is computed once for a pod to be scheduled, and asked about each node. `moved` changes it as
if a pod of the cluster came to a node or left it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from podling.model.rules.placement import selects
from podling.scheduler.cluster import Cluster
from podling.scheduler.filter import TOPOLOGY_SPREAD, Refusal
from podling.scheduler.info import NodeInfo, PodInfo, Spread
from podling.scheduler.node_match import asks_for_nodes, untolerated

HOSTNAME = "kubernetes.io/hostname"

_UNEVEN = Refusal(TOPOLOGY_SPREAD, ("node(s) didn't match pod topology spread constraints",))
_NO_LABEL = Refusal(
    TOPOLOGY_SPREAD,
    ("node(s) didn't match pod topology spread constraints (missing required label)",),
    final=True,
)


class _Domains(msgspec.Struct):
    """One hard constraint: matching pods by domain, and the most there may be where one more is added."""

    spread: Spread
    key: str
    counts: dict[str, int]
    limit: int


class SpreadState:
    """The hard constraints of `pod`."""

    __slots__ = ("_domains", "_pod", "_spreads")

    def __init__(self, pod: PodInfo, spreads: Sequence[Spread], counts: Sequence[dict[str, int]]) -> None:
        self._pod, self._spreads = pod, spreads
        self._domains = [
            _Domains(spread, spread.topology_key, by_domain, _limit(pod, spread, by_domain))
            for spread, by_domain in zip(spreads, counts, strict=True)
        ]

    def refuse(self, node: NodeInfo) -> Refusal | None:
        for domains in self._domains:
            domain = node.labels.get(domains.key)
            if domain is None:
                return _NO_LABEL
            if domains.counts.get(domain, 0) > domains.limit:
                return _UNEVEN
        return None

    def moved(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        for domains in self._domains:
            spread = domains.spread
            if spread.pods.has(other.pod) and list(_counted(self._pod, self._spreads, spread, (node,))):
                domains.counts[node.labels[domains.key]] += sign
                domains.limit = _limit(self._pod, spread, domains.counts)

    def clone(self) -> SpreadState:
        return SpreadState(self._pod, self._spreads, [dict(domains.counts) for domains in self._domains])


def spread_state(pod: PodInfo, cluster: Cluster) -> SpreadState | None:
    """None when the pod has no hard constraint."""
    hard = [spread for spread in pod.spreads if spread.hard]
    if not hard:
        return None
    return SpreadState(pod, hard, [_by_domain(pod, hard, spread, cluster) for spread in hard])


def spread_scores(pod: PodInfo, cluster: Cluster, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """0 to 100 for each of `nodes`, by the soft constraints; None when the pod has none."""
    soft = [spread for spread in pod.spreads if not spread.hard]
    if not soft:
        return None
    keys = _keys(soft)
    scored = [keys <= node.labels.keys() for node in nodes]
    costs = [0.0] * len(nodes)
    for spread in soft:
        counts = _by_domain(pod, soft, spread, cluster)
        among = {n.labels[spread.topology_key] for n, has in zip(nodes, scored, strict=True) if has}
        weight = math.log((sum(scored) if spread.topology_key == HOSTNAME else len(among)) + 2)
        for index, node in enumerate(nodes):
            if scored[index]:
                count = counts.get(node.labels[spread.topology_key], 0)
                costs[index] += count * weight + (spread.max_skew - 1)
    return _normalized([round(cost) for cost in costs], scored)


def _keys(spreads: Iterable[Spread]) -> frozenset[str]:
    """Only nodes with the keys of all constraints count for any of them."""
    return frozenset(spread.topology_key for spread in spreads)


def _by_domain(pod: PodInfo, spreads: Sequence[Spread], spread: Spread, cluster: Cluster) -> dict[str, int]:
    """Counts for every domain, empty ones too, because the others are compared with the emptiest."""
    found: dict[str, int] = {}
    per_node = cluster.count(spread.pods)
    for node in _counted(pod, spreads, spread, cluster.nodes.values()):
        domain = node.labels[spread.topology_key]
        found[domain] = found.get(domain, 0) + per_node.get(node.name, 0)
    return found


def _counted(
    pod: PodInfo, spreads: Sequence[Spread], spread: Spread, nodes: Iterable[NodeInfo]
) -> Iterator[NodeInfo]:
    """The nodes whose domains and pods the constraint counts."""
    spec, keys = pod.pod.spec, _keys(spreads)
    selective = spread.counts_only_selected_nodes and asks_for_nodes(spec)
    for node in nodes:
        if not keys <= node.labels.keys():
            continue
        if selective and not selects(pod.pod, node.node):
            continue
        if spread.counts_only_tolerated_nodes and untolerated(node.node.spec.taints, spec.tolerations):
            continue
        yield node


def _limit(pod: PodInfo, spread: Spread, counts: Mapping[str, int]) -> int:
    """The most pods a domain may have. The emptiest domain counts as empty while there are fewer domains than
    minDomains."""
    least = min(counts.values()) if counts and len(counts) >= spread.min_domains else 0
    return least + spread.max_skew - spread.pods.has(pod.pod)


def _normalized(costs: list[int], scored: list[bool]) -> list[int]:
    counted = [cost for cost, has in zip(costs, scored, strict=True) if has]
    most, least = max(counted, default=0), min(counted, default=0)
    return [
        0 if not has else 100 if not most else 100 * (most + least - cost) // most
        for cost, has in zip(costs, scored, strict=True)
    ]
