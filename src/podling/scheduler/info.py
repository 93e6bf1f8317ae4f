"""Nodes and pods as the scheduler sees them, computed once when they change. Pure.

`NodeInfo` is a node, its pods and what is still free. `PodInfo` is a pod with its effective requests, host
ports, and what it asks about other pods: affinity terms (`PodTerm`) and spread constraints (`Spread`). Terms
are values: two pods of one workload have equal terms, so what is counted for one serves all.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podling.model.quantity import Quantity
from podling.model.rules.placement import HostPort, host_ports, needed_to_run
from podling.model.rules.resources import pod_requests
from podling.model.selectors import IN, NOT_IN, NOTHING, Requirement, Selector, from_label_selector
from podling.model.types.container import Container, ResourceList
from podling.model.types.meta import LabelSelector
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from podling.scheduler.node_match import node_affinity

Labels = Mapping[str, str]
NamespaceLabels = Mapping[str, Labels]
"""Namespace → its labels."""

HARD_AFFINITY_WEIGHT = 1
"""The score that a running pod's required affinity gives to a node for a pod that it selects
(hardPodAffinityWeight).
"""

Key = tuple[str, str]
"""(namespace, name)"""

NANO = 10**9
ZERO = Quantity("0")
DEFAULT_CPU = NANO // 10
DEFAULT_MEMORY = 200 * 1024 * 1024 * NANO
"""What a container without requests counts for when nodes are scored, never when they are filtered."""

PODS = "pods"
"""The resource that a node has its number of pods as."""

_shapes = msgspec.json.Encoder()
_generations = itertools.count(1)


class PodSet(msgspec.Struct, frozen=True):
    """The pods of `namespaces` that `selector` selects; with `staying`, without those being deleted."""

    namespaces: frozenset[str]
    selector: Selector
    staying: bool = False

    def has(self, pod: Pod) -> bool:
        meta = pod.metadata
        if meta.namespace not in self.namespaces or (self.staying and meta.deletion_timestamp):
            return False
        return self.selector.matches(meta.labels)


class PodTerm(msgspec.Struct, frozen=True):
    """A PodAffinityTerm: the pods that `selector` selects, in `namespaces` or in those that
    `namespace_selector` selects, in one domain of `topology_key`."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING

    def means(self, pod: Pod, namespaces: NamespaceLabels) -> bool:
        meta = pod.metadata
        if not self.selector.matches(meta.labels):
            return False
        return meta.namespace in self.namespaces or self.namespace_selector.matches(
            namespaces.get(meta.namespace, {})
        )

    def pods(self, namespaces: NamespaceLabels) -> PodSet:
        """The selected pods, with the namespaces that exist now."""
        if self.namespace_selector.nothing:
            return PodSet(self.namespaces, self.selector)
        chosen = (name for name, labels in namespaces.items() if self.namespace_selector.matches(labels))
        return PodSet(self.namespaces | frozenset(chosen), self.selector)


class PodTerms(msgspec.Struct, frozen=True):
    """A pod's (anti-)affinity: required affinity, required anti-affinity, and preferred terms with their
    weights, negative for anti-affinity."""

    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    liked: tuple[tuple[PodTerm, int], ...] = ()

    def attraction(self) -> Iterator[tuple[PodTerm, int]]:
        """What this pod, once it runs, adds to the score of pods that its terms select."""
        yield from self.liked
        for term in self.near:
            yield term, HARD_AFFINITY_WEIGHT


NO_TERMS = PodTerms()


class Spread(msgspec.Struct, frozen=True):
    """A topologySpreadConstraint; `pods` are those it counts."""

    topology_key: str
    max_skew: int
    hard: bool
    pods: PodSet
    min_domains: int
    counts_only_selected_nodes: bool
    counts_only_tolerated_nodes: bool


def pod_terms(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity
    if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
        return NO_TERMS
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    liked = _weighted(pod, near.preferred_during_scheduling_ignored_during_execution if near else (), 1)
    disliked = _weighted(pod, apart.preferred_during_scheduling_ignored_during_execution if apart else (), -1)
    return PodTerms(
        _terms(pod, near.required_during_scheduling_ignored_during_execution if near else ()),
        _terms(pod, apart.required_during_scheduling_ignored_during_execution if apart else ()),
        (*liked, *disliked),
    )


def spreads(pod: Pod) -> tuple[Spread, ...]:
    namespace = frozenset((pod.metadata.namespace,))
    found = []
    for constraint in pod.spec.topology_spread_constraints:
        selector = _with_keys(_selector(constraint.label_selector), pod, constraint.match_label_keys)
        found.append(
            Spread(
                constraint.topology_key,
                constraint.max_skew,
                constraint.when_unsatisfiable != "ScheduleAnyway",
                PodSet(namespace, selector, staying=True),
                constraint.min_domains or 1,
                constraint.node_affinity_policy != "Ignore",
                constraint.node_taints_policy == "Honor",
            )
        )
    return tuple(found)


def _terms(pod: Pod, terms: Iterable[PodAffinityTerm]) -> tuple[PodTerm, ...]:
    return tuple(_term(pod, term) for term in terms)


def _weighted(pod: Pod, terms: Iterable[WeightedPodAffinityTerm], sign: int) -> Iterator[tuple[PodTerm, int]]:
    for weighted in terms:
        if weighted.weight:
            yield _term(pod, weighted.pod_affinity_term), sign * weighted.weight


def _term(pod: Pod, term: PodAffinityTerm) -> PodTerm:
    """Without namespaces and namespaceSelector a term means the pod's own namespace."""
    named = frozenset(term.namespaces)
    if not named and term.namespace_selector is None:
        named = frozenset((pod.metadata.namespace,))
    selector = _with_keys(_selector(term.label_selector), pod, term.match_label_keys)
    selector = _with_keys(selector, pod, term.mismatch_label_keys, NOT_IN)
    return PodTerm(term.topology_key, selector, named, _selector(term.namespace_selector))


def _with_keys(selector: Selector, pod: Pod, keys: Sequence[str], operator: str = IN) -> Selector:
    """The selector with the pod's own values of `keys` (matchLabelKeys); keys that the pod does not have are
    left out."""
    labels = pod.metadata.labels
    own = tuple(Requirement(key, operator, frozenset((labels[key],))) for key in keys if key in labels)
    return Selector(selector.requirements + own) if own and not selector.nothing else selector


def _selector(selector: LabelSelector | None) -> Selector:
    try:
        return from_label_selector(selector)
    except ValueError:
        # Validation refuses it; should one have been stored all the same, the scheduler must live on.
        return NOTHING


class PodInfo(msgspec.Struct, eq=False):
    """A pod for the scheduler. Amounts are nanos of the resource's unit; scores use `cpu` and `memory`."""

    pod: Pod
    requests: Mapping[str, int]
    cpu: int
    memory: int
    ports: frozenset[HostPort]
    terms: PodTerms
    spreads: tuple[Spread, ...]
    images: tuple[str, ...]
    features: frozenset[str]
    """Features that its node must declare."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> Key:
        return self.pod.metadata.namespace, self.pod.metadata.name

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    def shape(self) -> Hashable:
        """Equal for two pods that every node by itself answers alike."""
        spec = self.pod.spec
        rules = (spec.node_selector, node_affinity(spec), spec.tolerations, spec.node_name)
        return (
            frozenset(self.requests.items()),
            self.cpu,
            self.memory,
            self.ports,
            self.features,
            _shapes.encode(rules),
        )


def pod_info(pod: Pod) -> PodInfo:
    requests = {name: amount.nanos for name, amount in pod_requests(_held(pod)).items() if amount.nanos}
    names = (one.image for one in (*pod.spec.init_containers, *pod.spec.containers))
    return PodInfo(
        pod,
        requests,
        requests.get("cpu", 0) + DEFAULT_CPU * _without(pod, "cpu"),
        requests.get("memory", 0) + DEFAULT_MEMORY * _without(pod, "memory"),
        frozenset(host_ports(pod)),
        pod_terms(pod),
        spreads(pod),
        # With a tag, as node status lists images.
        tuple(name if ":" in name.rpartition("/")[2] else f"{name}:latest" for name in names),
        needed_to_run(pod.spec),
    )


class Given(msgspec.Struct, frozen=True):
    """The resources that the kubelet has allocated to a pod's containers. `refused`: the resize is
    infeasible."""

    containers: Mapping[str, ResourceList]
    refused: bool


def given(pod: Pod) -> Given:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    containers = {}
    for status in statuses:
        # The larger of what the container was allocated and what it has.
        has = status.resources.requests if status.resources is not None else {}
        if amounts := _most(status.allocated_resources, has):
            containers[status.name] = amounts
    conditions = pod.status.conditions
    refused = any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in conditions)
    return Given(containers, refused)


def _held(pod: Pod) -> Pod:
    """The pod with what its containers hold as requests: a container that is to shrink keeps its room until
    the kubelet has shrunk it, and a resize that is infeasible takes no more room."""
    has = given(pod)
    if not has.containers:
        return pod
    spec = replace(
        pod.spec,
        containers=[_holding(container, has) for container in pod.spec.containers],
        init_containers=[_holding(container, has) for container in pod.spec.init_containers],
    )
    return replace(pod, spec=spec)


def _holding(container: Container, has: Given) -> Container:
    asked, amounts = container.resources.requests, has.containers.get(container.name)
    if amounts is None:
        return container
    held = amounts if has.refused else _most(asked, amounts)
    if held == asked:
        return container
    return replace(container, resources=replace(container.resources, requests=held))


def _most(one: ResourceList, other: ResourceList) -> ResourceList:
    return {**one, **{name: amount for name, amount in other.items() if amount > one.get(name, ZERO)}}


def _without(pod: Pod, resource: str) -> int:
    """The number of containers that do not request `resource`."""
    if pod.spec.resources is not None and resource in pod.spec.resources.requests:
        return 0
    return sum(1 for container in pod.spec.containers if resource not in container.resources.requests)


class NodeInfo:
    """A node with the pods assigned to it. Sums are kept as pods come and go, in nanos.

    `generation` is a number no node has had before, taken at each change: an answer that was kept with it is
    valid while it is equal.
    """

    __slots__ = (
        "allocatable",
        "cpu",
        "generation",
        "images",
        "labels",
        "memory",
        "name",
        "node",
        "pods",
        "ports",
        "requested",
    )

    node: Node
    name: str
    labels: Mapping[str, str]
    allocatable: dict[str, int]
    images: dict[str, int]
    """Image name → bytes."""

    def __init__(self, node: Node) -> None:
        self.pods: dict[str, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.cpu = 0
        self.memory = 0
        self.ports: Counter[HostPort] = Counter()
        self.set_node(node)

    def set_node(self, node: Node) -> None:
        self.node = node
        self.name = node.metadata.name
        self.labels = node.metadata.labels
        self.allocatable = {name: amount.nanos for name, amount in node.status.allocatable.items()}
        self.images = {name: image.size_bytes for image in node.status.images for name in image.names}
        self.generation = next(_generations)

    def add(self, pod: PodInfo) -> None:
        self.remove(pod.uid)
        self.pods[pod.uid] = pod
        self._count(pod, 1)
        self.ports.update(pod.ports)

    def remove(self, uid: str) -> None:
        known = self.pods.pop(uid, None)
        if known is not None:
            self._count(known, -1)
            self.ports -= Counter(known.ports)

    def clone(self) -> NodeInfo:
        """A copy, to try what other pods on the node would change."""
        twin = NodeInfo(self.node)
        twin.pods, twin.requested, twin.ports = dict(self.pods), dict(self.requested), self.ports.copy()
        twin.cpu, twin.memory = self.cpu, self.memory
        return twin

    def shortages(self, pod: PodInfo) -> Iterator[str]:
        """The resources that `pod` requests and this node has too little of."""
        if (len(self.pods) + 1) * NANO > self.allocatable.get(PODS, 0):
            yield PODS
        for resource, wanted in pod.requests.items():
            if wanted > self.allocatable.get(resource, 0) - self.requested.get(resource, 0):
                yield resource

    def _count(self, pod: PodInfo, sign: int) -> None:
        for resource, amount in pod.requests.items():
            self.requested[resource] = self.requested.get(resource, 0) + sign * amount
        self.cpu += sign * pod.cpu
        self.memory += sign * pod.memory
        self.generation = next(_generations)
