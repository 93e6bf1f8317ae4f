"""InterPodAffinity: required and preferred (anti-)affinity between pods. Pure.

An `AffinityState` is computed once for a pod to be scheduled, from the cluster's counts, and asked about each
node. `moved` changes it as if a pod of the cluster came to a node or left it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from podling.scheduler.cluster import ByNode, Cluster, about, domains, in_all
from podling.scheduler.filter import POD_AFFINITY, Refusal
from podling.scheduler.info import NamespaceLabels, NodeInfo, PodInfo, PodTerm

Domain = tuple[str, str]
"""(topology key, value)"""

Counts = defaultdict[Domain, int]

_NOT_NEAR = Refusal(POD_AFFINITY, ("node(s) didn't match pod affinity rules",), final=True)
_NOT_APART = Refusal(POD_AFFINITY, ("node(s) didn't match pod anti-affinity rules",))
_UNWELCOME = Refusal(POD_AFFINITY, ("node(s) didn't satisfy existing pods anti-affinity rules",))


class AffinityState:
    """For `pod`: the domains with pods that it must be near to, the domains with pods it must be apart from,
    and the domains with pods that must be apart from it."""

    __slots__ = ("_apart", "_namespaces", "_near", "_pod", "_unwelcome")

    def __init__(
        self, pod: PodInfo, namespaces: NamespaceLabels, near: Counts, apart: Counts, unwelcome: Counts
    ) -> None:
        self._pod, self._namespaces = pod, namespaces
        self._near, self._apart, self._unwelcome = near, apart, unwelcome

    def refuse(self, node: NodeInfo) -> Refusal | None:
        if not self._is_near(node.labels):
            return _NOT_NEAR
        for term in self._pod.terms.apart:
            if self._apart.get((term.topology_key, node.labels.get(term.topology_key, ""))):
                return _NOT_APART
        if self._unwelcome and any(self._unwelcome.get(domain) for domain in node.labels.items()):
            return _UNWELCOME
        return None

    def moved(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        mine, namespaces = self._pod.terms, self._namespaces
        if mine.near and in_all([term.pods(namespaces) for term in mine.near], other.pod):
            _shift(self._near, mine.near, node, sign)
        _shift(self._apart, (t for t in mine.apart if t.means(other.pod, namespaces)), node, sign)
        theirs = (t for t in other.terms.apart if t.means(self._pod.pod, namespaces))
        _shift(self._unwelcome, theirs, node, sign)

    def clone(self) -> AffinityState:
        near, apart, unwelcome = self._near.copy(), self._apart.copy(), self._unwelcome.copy()
        return AffinityState(self._pod, self._namespaces, near, apart, unwelcome)

    def _is_near(self, labels: Mapping[str, str]) -> bool:
        """The first pod of a group with affinity to itself may go to any node that has the topology keys."""
        terms = self._pod.terms.near
        if any(term.topology_key not in labels for term in terms):
            return False
        if all(self._near.get((term.topology_key, labels[term.topology_key])) for term in terms):
            return True
        return not any(self._near.values()) and all(
            term.means(self._pod.pod, self._namespaces) for term in terms
        )


def affinity_state(pod: PodInfo, cluster: Cluster) -> AffinityState | None:
    """None when neither the pod nor any running pod has a required term that matters here."""
    unwelcome = _summed(about(cluster.apart, pod.pod, cluster.namespaces), cluster)
    terms = pod.terms
    if not terms.near and not terms.apart and not unwelcome:
        return None
    # Only pods that all terms mean count for any of them.
    sets = tuple(term.pods(cluster.namespaces) for term in terms.near)
    near = ((term, cluster.count(*sets)) for term in terms.near)
    apart = ((term, cluster.count(term.pods(cluster.namespaces))) for term in terms.apart)
    return AffinityState(pod, cluster.namespaces, _summed(near, cluster), _summed(apart, cluster), unwelcome)


def affinity_scores(pod: PodInfo, cluster: Cluster, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """0 to 100 for each of `nodes`, by the preferred terms of the pod and of the running pods; None when
    there are none."""
    scores: defaultdict[str, dict[str, int]] = defaultdict(dict)
    liked = ((term, weight, cluster.count(term.pods(cluster.namespaces))) for term, weight in pod.terms.liked)
    liking = (
        (term, weight, nodes)
        for (term, weight), nodes in cluster.attraction.items()
        if term.means(pod.pod, cluster.namespaces)
    )
    for term, weight, counts in (*liked, *liking):
        for value, count in domains(counts, cluster.nodes, term.topology_key).items():
            values = scores[term.topology_key]
            values[value] = values.get(value, 0) + weight * count
    if not scores:
        return None
    raw = [0] * len(nodes)
    for key, values in scores.items():
        for index, node in enumerate(nodes):
            raw[index] += values.get(node.labels.get(key, ""), 0)
    least, most = min(raw, default=0), max(raw, default=0)
    return [100 * (score - least) // (most - least) if most > least else 0 for score in raw]


def _summed(found: Iterable[tuple[PodTerm, ByNode]], cluster: Cluster) -> Counts:
    total: Counts = defaultdict(int)
    for term, counts in found:
        for value, count in domains(counts, cluster.nodes, term.topology_key).items():
            total[term.topology_key, value] += count
    return total


def _shift(counts: Counts, terms: Iterable[PodTerm], node: NodeInfo, sign: int) -> None:
    for term in terms:
        value = node.labels.get(term.topology_key)
        if value is not None:
            counts[term.topology_key, value] += sign
