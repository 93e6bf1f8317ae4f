"""Where a watch may resume."""

from __future__ import annotations

import pytest

from podling.storage.interface import CompactedError
from podling.watch.cache import Window
from podling.watch.frames import Change


def _window(size: int, *revisions: int, start: int = 0) -> Window:
    window = Window(size, start)
    window.extend(Change(revision, "/registry/pods/a", None, None) for revision in revisions)
    return window


def _since(window: Window, revision: int) -> list[int]:
    return [change.revision for change in window.since(revision)]


@pytest.mark.parametrize(
    ("revision", "changes"), [(10, [11, 14, 15]), (11, [14, 15]), (13, [14, 15]), (15, []), (99, [])]
)
def test_it_tells_what_came_after(revision: int, changes: list[int]) -> None:
    assert _since(_window(5, 11, 14, 15, start=10), revision) == changes


def test_before_its_start_history_is_gone() -> None:
    with pytest.raises(CompactedError) as compacted:
        _window(5, 11, start=10).since(9)
    assert compacted.value.revision == 10


def test_a_full_window_starts_after_what_it_lost() -> None:
    window = _window(2, 11, 14, 15, 19, start=10)
    assert _since(window, 14) == [15, 19]
    with pytest.raises(CompactedError) as compacted:
        window.since(13)
    assert compacted.value.revision == 14
