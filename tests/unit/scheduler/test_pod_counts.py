from __future__ import annotations

from collections.abc import Callable

from podling.model.selectors import from_label_selector
from podling.model.types.meta import LabelSelector
from podling.scheduler.cluster import REMEMBERED, PodCounts
from podling.scheduler.info import PodInfo, PodSet


def web(number: int = 0) -> PodSet:
    selector = from_label_selector(LabelSelector(match_labels={"app": f"web{number or ''}"}))
    return PodSet(frozenset(("ns",)), selector)


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
    for number in range(1, REMEMBERED + 1):
        counts.of((web(number),), [])
    assert counts.of((web(),), []) == {}
