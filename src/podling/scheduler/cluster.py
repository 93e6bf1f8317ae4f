"""The scheduler's view of the cluster: nodes, the pods on them (assumed ones too), and nominated pods.

The informers' events and the scheduler's own decisions change it, between two decisions and never during one.

`PodCounts` answers "how many of these pods run on each node", `TermHolders` "where do pods run that have this
(anti-)affinity term". Both are kept up to date as pods come and go, so that scheduling a pod does not look at
all other pods. They count by node and not by topology domain, because labels of nodes may change and each
question decides by itself which nodes count.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.scheduler.info import Key, Labels, NamespaceLabels, NodeInfo, PodInfo, PodSet, PodTerm
from podling.scheduler.volumes import Storage, claims_of

REMEMBERED = 512
"""Questions whose counts are kept; the one not asked for longest is dropped, and counted anew when asked
again.
"""

ByNode = Mapping[str, int]
"""Node name → count, without zeros."""

T = TypeVar("T", PodTerm, tuple[PodTerm, int])


class PodCounts:
    """Counts pods by node. A question is a tuple of pod sets: it counts the pods that are in all of them."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[PodSet, ...], dict[str, int]] = OrderedDict()

    def of(self, sets: tuple[PodSet, ...], placed: Iterable[tuple[str, PodInfo]]) -> ByNode:
        """The counts for `sets`. `placed` is every pod with its node, read only when the question is new."""
        known = self._answers.get(sets)
        if known is None:
            known = self._answers[sets] = {}
            for node, info in placed:
                if in_all(sets, info.pod):
                    known[node] = known.get(node, 0) + 1
            if len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(sets)
        return known

    def moved(self, info: PodInfo, node: str, sign: int) -> None:
        for sets, answer in self._answers.items():
            if in_all(sets, info.pod):
                _add(answer, node, sign)


class TermHolders(Generic[T]):
    """For each different term, the nodes of the pods that have it."""

    def __init__(self, held: Callable[[PodInfo], Iterable[T]]) -> None:
        self._held: Callable[[PodInfo], Iterable[T]] = held
        self._nodes: dict[T, dict[str, int]] = {}

    def moved(self, info: PodInfo, node: str, sign: int) -> None:
        for term in self._held(info):
            nodes = self._nodes.setdefault(term, {})
            _add(nodes, node, sign)
            if not nodes:
                del self._nodes[term]

    def items(self) -> Iterator[tuple[T, ByNode]]:
        yield from self._nodes.items()


def holders_of_apart() -> TermHolders[PodTerm]:
    return TermHolders(lambda info: info.terms.apart)


def holders_of_attraction() -> TermHolders[tuple[PodTerm, int]]:
    return TermHolders(lambda info: info.terms.attraction())


def about(
    holders: TermHolders[PodTerm], pod: Pod, namespaces: NamespaceLabels
) -> Iterator[tuple[PodTerm, ByNode]]:
    """The held terms that select `pod`."""
    for term, nodes in holders.items():
        if term.means(pod, namespaces):
            yield term, nodes


def in_all(sets: Iterable[PodSet], pod: Pod) -> bool:
    return all(pods.has(pod) for pods in sets)


def _add(counts: dict[str, int], node: str, sign: int) -> None:
    left = counts.get(node, 0) + sign
    if left:
        counts[node] = left
    else:
        counts.pop(node, None)


class Cluster:
    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, Labels] = {}
        self.apart = holders_of_apart()
        self.attraction = holders_of_attraction()
        self._counts = PodCounts()
        self._pods: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self.nominated: dict[str, dict[str, PodInfo]] = {}
        """Node → the pods it is promised to, by uid."""
        self._nomination_of: dict[str, str] = {}
        self.claimed: Counter[Key] = Counter()
        """Claim → how many pods on nodes have it."""
        self.storage: Storage | None = None
        """What there is of volumes; None where nobody asks."""
        self.having: Counter[str] = Counter()
        """Image → how many nodes have it."""

    def put_node(self, node: Node) -> NodeInfo:
        """Add or replace a node. A new node gets the pods that were bound to it before it was known."""
        name = node.metadata.name
        info = self.nodes.get(name)
        if info is not None:
            self._have(info.images, -1)
            info.set_node(node)
            self._have(info.images, 1)
            return info
        info = self.nodes[name] = NodeInfo(node)
        self._have(info.images, 1)
        for pod in self._pods.get(name, {}).values():
            info.add(pod)
        return info

    def drop_node(self, name: str) -> None:
        gone = self.nodes.pop(name, None)
        if gone is not None:
            self._have(gone.images, -1)

    def pod(self, uid: str) -> PodInfo | None:
        """The pod as it runs on its node, or is assumed to; None when it is on none."""
        return self._pods.get(self._node_of.get(uid, ""), {}).get(uid)

    def node_of(self, uid: str) -> str:
        return self._node_of.get(uid, "")

    def put_pod(self, pod: PodInfo, node: str) -> None:
        self.drop_pod(pod.uid)
        self._node_of[pod.uid] = node
        self._pods.setdefault(node, {})[pod.uid] = pod
        self._moved(pod, node, 1)
        if node in self.nodes:
            self.nodes[node].add(pod)

    def drop_pod(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pod = self._pods[node].pop(uid)
        if not self._pods[node]:
            del self._pods[node]
        self._moved(pod, node, -1)
        if node in self.nodes:
            self.nodes[node].remove(uid)

    def count(self, *sets: PodSet) -> ByNode:
        """How many pods that are in all of `sets` run on each node."""
        return self._counts.of(sets, self._placed())

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Record `pod`, which waits for room, as nominated to `node`; an empty `node` removes its
        nomination."""
        before = self._nomination_of.pop(pod.uid, None)
        if before is not None:
            del self.nominated[before][pod.uid]
            if not self.nominated[before]:
                del self.nominated[before]
        if node:
            self._nomination_of[pod.uid] = node
            self.nominated.setdefault(node, {})[pod.uid] = pod

    def nomination_of(self, uid: str) -> str:
        return self._nomination_of.get(uid, "")

    def _have(self, images: Iterable[str], sign: int) -> None:
        for image in images:
            self.having[image] += sign
            if not self.having[image]:
                del self.having[image]

    def _placed(self) -> Iterator[tuple[str, PodInfo]]:
        for node, pods in self._pods.items():
            for pod in pods.values():
                yield node, pod

    def _moved(self, pod: PodInfo, node: str, sign: int) -> None:
        self._counts.moved(pod, node, sign)
        self.apart.moved(pod, node, sign)
        self.attraction.moved(pod, node, sign)
        for claim in claims_of(pod.pod):
            self.claimed[claim] += sign
            if not self.claimed[claim]:
                del self.claimed[claim]


def domains(counts: ByNode, nodes: Mapping[str, NodeInfo], key: str) -> dict[str, int]:
    """The counts by the nodes' values of the topology key. Nodes without the key, and nodes that were deleted
    while their pods still exist, are left out."""
    found: dict[str, int] = {}
    for name, count in counts.items():
        node = nodes.get(name)
        value = node.labels.get(key) if node is not None else None
        if value is not None:
            found[value] = found.get(value, 0) + count
    return found
