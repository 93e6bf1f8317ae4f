"""Which pods make room for a critical one. Pure.

As few as will do, and of the least protected QoS class that has enough: Guaranteed pods only for what all
others together cannot give, then Burstable, then BestEffort.
"""

from __future__ import annotations

from collections.abc import Iterable

from podling.kubelet.planning.admission import Amounts, amounts, is_critical
from podling.model.pod import Pod
from podling.model.resources import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class

REASON = "Preempting"
MESSAGE = "Preempted in order to admit critical pod"


def victims(pod: Pod, others: Iterable[Pod], missing: Amounts) -> list[Pod] | None:
    """None when even all that may go would not be enough."""
    classes: dict[str, list[Pod]] = {BEST_EFFORT: [], BURSTABLE: [], GUARANTEED: []}
    for other in others:
        if preemptable(pod, other):
            classes[qos_class(other)].append(other)
    best_effort, burstable, guaranteed = classes.values()
    if _less(missing, (*best_effort, *burstable, *guaranteed)):
        return None
    last = _fewest(guaranteed, _less(missing, (*best_effort, *burstable)))
    middle = _fewest(burstable, _less(missing, (*best_effort, *last)))
    first = _fewest(best_effort, _less(missing, (*middle, *last)))
    return [*first, *middle, *last]


def preemptable(pod: Pod, other: Pod) -> bool:
    """Whether `other` may have to go for `pod`."""
    if is_critical(pod) and not is_critical(other):
        return True
    return (pod.spec.priority or 0) > (other.spec.priority or 0)


def _fewest(pods: Iterable[Pod], missing: Amounts) -> list[Pod]:
    """Each time the pod that gives most of what is still missing; of equal ones the smaller."""
    left, chosen = list(pods), []
    while missing:
        best = min(left, key=lambda pod: (_distance(pod, missing), _size(pod)))
        left.remove(best)
        chosen.append(best)
        missing = _less(missing, (best,))
    return chosen


def _distance(pod: Pod, missing: Amounts) -> float:
    """0 when the pod gives all that is missing; each resource counts the same."""
    return sum((_less({name: need}, (pod,)).get(name, 0) / need) ** 2 for name, need in missing.items())


def _less(missing: Amounts, pods: Iterable[Pod]) -> Amounts:
    """What is missing still when these have gone."""
    given = [amounts(pod) for pod in pods]
    left = {name: need - sum(of.get(name, 0) for of in given) for name, need in missing.items()}
    return {name: need for name, need in left.items() if need > 0}


def _size(pod: Pod) -> tuple[int, int]:
    of = amounts(pod)
    return of.get("memory", 0), of.get("cpu", 0)
