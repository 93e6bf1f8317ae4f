"""How fast something has grown of late."""

from __future__ import annotations

from podling.kubelet.stats.summary import Rates


def test_a_rate_is_what_came_between_two_looks() -> None:
    rates = Rates()
    assert rates.rate("a", 100, 0.0) is None
    assert rates.rate("a", 300, 10.0) == 20
    assert rates.rate("a", 310, 10.5) == 20, "too soon to tell anything else"
    assert rates.rate("a", 350, 15.0) == 10


def test_what_began_anew_or_was_forgotten_has_no_rate_yet() -> None:
    rates = Rates()
    rates.rate("a", 100, 0.0)
    assert rates.rate("a", 5, 10.0) is None
    rates.keep(set())
    assert rates.rate("a", 50, 20.0) is None
