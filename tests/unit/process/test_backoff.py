from __future__ import annotations

import pytest

from podling.process.backoff import Backoff


def test_it_doubles_up_to_the_longest_and_begins_again_after_success() -> None:
    retries = Backoff(0.5, 3).begin()
    assert [retries.next() for _ in range(5)] == [0.5, 1, 2, 3, 3]
    retries.reset()
    assert retries.next() == 0.5


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 0.5), (3, 2), (4, 3), (10_000, 3)])
def test_the_delay_follows_from_the_failures(failures: int, seconds: float) -> None:
    assert Backoff(0.5, 3).after(failures) == seconds
