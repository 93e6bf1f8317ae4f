from __future__ import annotations

from podling.client.retry import GrowingWait


def test_it_doubles_up_to_the_longest_and_begins_again_after_success() -> None:
    wait = GrowingWait(0.5, 3)
    assert [wait.next() for _ in range(5)] == [0.5, 1, 2, 3, 3]
    wait.reset()
    assert wait.next() == 0.5
