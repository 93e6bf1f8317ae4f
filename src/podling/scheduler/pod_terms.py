"""What a pod says about other pods, ready to be asked: affinity terms and spread constraints. Pure.

Terms are values: two pods of one workload have equal terms, so that what is counted for one is counted for
all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from podling.model.meta import LabelSelector
from podling.model.pod import Pod
from podling.model.scheduling import PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm
from podling.model.selector import IN, NOT_IN, NOTHING, Requirement, Selector, from_label_selector

Labels = Mapping[str, str]
NamespaceLabels = Mapping[str, Labels]
"""Namespace → its labels."""

HARD_AFFINITY_WEIGHT = 1
"""What a required affinity of a running pod is worth to one it would like beside it."""


class PodSet(msgspec.Struct, frozen=True):
    """The pods of `namespaces` that `selector` selects; with `staying`, only those not being deleted."""

    namespaces: frozenset[str]
    selector: Selector
    staying: bool = False

    def has(self, pod: Pod) -> bool:
        meta = pod.metadata
        if meta.namespace not in self.namespaces or (self.staying and meta.deletion_timestamp):
            return False
        return self.selector.matches(meta.labels)


class PodTerm(msgspec.Struct, frozen=True):
    """Pods that `selector` selects, in `namespaces` or those that `namespace_selector` selects, in one domain
    of `topology_key`.
    """

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
        """With the namespaces that are there now."""
        if self.namespace_selector.nothing:
            return PodSet(self.namespaces, self.selector)
        chosen = (name for name, labels in namespaces.items() if self.namespace_selector.matches(labels))
        return PodSet(self.namespaces | frozenset(chosen), self.selector)


class PodTerms(msgspec.Struct, frozen=True):
    """The four lists of a pod's (anti-)affinity; a preferred term with its weight, negative for anti."""

    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    liked: tuple[tuple[PodTerm, int], ...] = ()

    def attraction(self) -> Iterator[tuple[PodTerm, int]]:
        """What this pod, where it runs, adds to the score of pods its terms mean."""
        yield from self.liked
        for term in self.near:
            yield term, HARD_AFFINITY_WEIGHT


NO_TERMS = PodTerms()


class Spread(msgspec.Struct, frozen=True):
    """A topologySpreadConstraint of `pods`."""

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
    return tuple(_spread(pod, constraint) for constraint in pod.spec.topology_spread_constraints)


def _spread(pod: Pod, constraint: TopologySpreadConstraint) -> Spread:
    selector = _with_keys(_selector(constraint.label_selector), pod, constraint.match_label_keys)
    return Spread(
        constraint.topology_key,
        constraint.max_skew,
        constraint.when_unsatisfiable != "ScheduleAnyway",
        PodSet(frozenset((pod.metadata.namespace,)), selector, staying=True),
        constraint.min_domains or 1,
        constraint.node_affinity_policy != "Ignore",
        constraint.node_taints_policy == "Honor",
    )


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
    """The selector with the pod's own values of `keys`; keys the pod does not have are left out."""
    labels = pod.metadata.labels
    own = tuple(Requirement(key, operator, frozenset((labels[key],))) for key in keys if key in labels)
    return Selector(selector.requirements + own) if own and not selector.nothing else selector


def _selector(selector: LabelSelector | None) -> Selector:
    try:
        return from_label_selector(selector)
    except ValueError:
        # Validation refuses it; should one have been stored all the same, the scheduler must live on.
        return NOTHING
