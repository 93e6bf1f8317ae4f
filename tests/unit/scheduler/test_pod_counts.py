from __future__ import annotations

from collections.abc import Callable

from podling.model.selector import parse
from podling.scheduler import pod_counts
from podling.scheduler.pod_counts import PodCounts
from podling.scheduler.pod_info import PodInfo
from podling.scheduler.pod_terms import PodSet


def web(number: int = 0) -> PodSet:
    return PodSet(frozenset(("ns",)), parse(f"app=web{number or ''}"))


def test_counted_once_then_kept(pod: Callable[..., PodInfo]) -> None:
    """All pods are looked at only when a question is new."""
    counts, one = PodCounts(), pod("one", labels={"app": "web"})
    assert counts.of((web(),), [("a", one)]) == {"a": 1}
    counts.moved(one, "b", 1)
    counts.moved(pod("other"), "b", 1)
    assert counts.of((web(),), []) == {"a": 1, "b": 1}
    counts.moved(one, "a", -1)
    assert counts.of((web(),), []) == {"b": 1}


def test_the_question_not_asked_for_longest_is_forgotten(pod: Callable[..., PodInfo]) -> None:
    counts, one = PodCounts(), pod("one", labels={"app": "web"})
    counts.of((web(),), [("a", one)])
    for number in range(1, pod_counts.REMEMBERED + 1):
        counts.of((web(number),), [])
    assert counts.of((web(),), []) == {}
