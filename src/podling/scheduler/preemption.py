"""Preemption: which pods are evicted so that a pod of higher priority can run, and on which node. Pure.

A node's victims are the fewest that make room: all pods of lower priority are removed, then given back as
long as the pod still fits, those that a PodDisruptionBudget protects first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podling.model.selectors import from_label_selector
from podling.model.types.policy import PodDisruptionBudget
from podling.scheduler.cluster import Cluster
from podling.scheduler.decision import Cycle, WhatIf, cycle_of, promised_before
from podling.scheduler.filter import Refusal
from podling.scheduler.info import NodeInfo, PodInfo

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = Refusal("", ("No preemption victims found for incoming pod",), final=True)
NEVER = "not eligible due to preemptionPolicy=Never."
STILL_LEAVING = "not eligible due to a terminating pod on the nominated node."
PREEMPTED = "PreemptionByScheduler"

LEAST_SHARE, LEAST = 10, 100
"""Nodes tried: this percentage of those where preemption may help, and at least this number."""
OFFSET = 1 << 31
"""Makes every priority positive, so that one victim always costs less than two."""


class Candidate(msgspec.Struct, frozen=True):
    """A node and its victims, from the highest priority to the lowest; `violations` of budgets."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int


def ineligible(pod: PodInfo, cluster: Cluster, refusals: Mapping[str, Refusal]) -> str:
    """Why the pod may not preempt now; empty when it may."""
    if pod.pod.spec.preemption_policy == "Never":
        return NEVER
    promised = cluster.nomination_of(pod.uid)
    node = cluster.nodes.get(promised)
    if node is None or (promised in refusals and refusals[promised].final):
        return ""
    leaving = (other for other in node.pods.values() if other.priority < pod.priority)
    return STILL_LEAVING if any(map(is_being_preempted, leaving)) else ""


def is_being_preempted(pod: PodInfo) -> bool:
    if not pod.pod.metadata.deletion_timestamp:
        return False
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == PREEMPTED
        for c in pod.pod.status.conditions
    )


def candidates(
    pod: PodInfo,
    cluster: Cluster,
    refusals: Mapping[str, Refusal],
    budgets: Sequence[PodDisruptionBudget],
    offset: int = 0,
) -> tuple[list[Candidate], dict[str, Refusal]]:
    """The nodes that can be freed, and why the other nodes tried cannot. `offset` is the index of the first
    node, so that it is not always the same ones that are tried."""
    hopeful = [cluster.nodes[name] for name, refusal in refusals.items() if not refusal.final]
    enough = max(len(hopeful) * LEAST_SHARE // 100, LEAST)
    start = offset % len(hopeful) if hopeful else 0
    cycle = cycle_of(pod, cluster)
    found: list[Candidate] = []
    refused: dict[str, Refusal] = {}
    for node in (*hopeful[start:], *hopeful[:start]):
        result = free(cycle, node, cluster, budgets)
        if isinstance(result, Refusal):
            refused[node.name] = result
            continue
        found.append(result)
        if len(found) >= enough:
            break
    return found, refused


def free(
    cycle: Cycle, node: NodeInfo, cluster: Cluster, budgets: Sequence[PodDisruptionBudget]
) -> Candidate | Refusal:
    """The candidate for one node, or its refusal."""
    lesser = [other for other in node.pods.values() if other.priority < cycle.pod.priority]
    if not lesser:
        return NO_VICTIMS
    what_if = WhatIf(cycle, node)
    for promised in promised_before(cycle.pod, node, cluster):
        what_if.add(promised)
    for other in lesser:
        what_if.remove(other)
    refusal = what_if.refuse()
    if refusal is not None:
        return refusal
    protected, others = protected_by(budgets, sorted(lesser, key=importance))
    violating = [other for other in protected if not _reprieved(what_if, other)]
    victims = violating + [other for other in others if not _reprieved(what_if, other)]
    if not victims:
        return NO_VICTIMS
    return Candidate(node.name, tuple(sorted(victims, key=importance)), len(violating))


def _reprieved(what_if: WhatIf, other: PodInfo) -> bool:
    what_if.add(other)
    if what_if.refuse() is None:
        return True
    what_if.remove(other)
    return False


def protected_by(
    budgets: Sequence[PodDisruptionBudget], pods: Iterable[PodInfo]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """(pods whose eviction would violate a budget, the other pods), when they are evicted in this order."""
    allowances = [_Allowance(budget) for budget in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        spent = [allowance.spend() for allowance in allowances if allowance.covers(pod)]
        (others if all(spent) else violating).append(pod)
    return violating, others


class _Allowance:
    """How many more disruptions a budget allows."""

    def __init__(self, budget: PodDisruptionBudget) -> None:
        self._budget = budget
        self._selector = from_label_selector(budget.spec.selector)
        self._left = budget.status.disruptions_allowed

    def covers(self, pod: PodInfo) -> bool:
        """Whether the budget counts the eviction of `pod`. An empty selector protects nothing here; a pod
        that is being evicted already was counted."""
        meta = pod.pod.metadata
        return (
            meta.namespace == self._budget.metadata.namespace
            and bool(meta.labels and self._selector)
            and self._selector.matches(meta.labels)
            and meta.name not in self._budget.status.disrupted_pods
        )

    def spend(self) -> bool:
        self._left -= 1
        return self._left >= 0


def choose(found: Sequence[Candidate]) -> Candidate:
    """The candidate that does the least harm; the first among equals."""
    return max(found, key=_merit)


def importance(pod: PodInfo) -> tuple[int, str]:
    """Sort key, most important first: by priority, then by the longer run."""
    return -pod.priority, started(pod)


def started(pod: PodInfo) -> str:
    """The start time (RFC 3339); a pod that has not started sorts as the youngest."""
    return pod.pod.status.start_time or "9999"


def _merit(candidate: Candidate) -> tuple[int, int, int, int, str]:
    victims = candidate.victims
    highest = victims[0].priority
    return (
        -candidate.violations,
        -highest,
        -sum(pod.priority + OFFSET for pod in victims),
        -len(victims),
        min(started(pod) for pod in victims if pod.priority == highest),
    )
