"""How many pods of each node a question is about, kept as pods come and go, so that no pod to be scheduled
makes the scheduler look at all others. Pure.

`PodCounts` answers "how many of these pods run on each node", `TermHolders` "where do pods run that said this
about others". Both keep counts by node, not by topology domain: labels of nodes may change, and each question
has its own opinion which nodes count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from podling.model.pod import Pod
from podling.scheduler.pod_info import PodInfo
from podling.scheduler.pod_terms import NamespaceLabels, PodSet, PodTerm

REMEMBERED = 512
"""Questions whose answers are kept; the one not asked for longest is forgotten, and counted anew if asked."""

ByNode = Mapping[str, int]
"""Node name → count, without zeros."""

T = TypeVar("T", PodTerm, tuple[PodTerm, int])


class PodCounts:
    """A question is a tuple of pod sets: the pods in all of them are counted."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[PodSet, ...], dict[str, int]] = OrderedDict()

    def of(self, sets: tuple[PodSet, ...], placed: Iterable[tuple[str, PodInfo]]) -> ByNode:
        """`placed` is every pod with its node, looked at only when the question is new."""
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
    """Where pods run that hold a term, for each different term."""

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
    """The held terms that mean `pod`."""
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
