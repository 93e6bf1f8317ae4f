"""Where a watch may resume."""

from __future__ import annotations

import pytest

from podling.storage.interface import CompactedError
from podling.watch.cache import Window
from podling.watch.entry import Change, Decoder, Entry


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


def test_large_objects_make_a_shorter_past() -> None:
    """Whoever writes a megabyte again and again fills no memory with it."""
    decoder = Decoder(lambda data: data)
    entries = [Entry("/registry/pods/a", n, b'{"metadata":{}}'.ljust(100), decoder) for n in range(1, 51)]
    window = Window(1000, 0, most_bytes=1000)
    window.extend(Change(entry.revision, entry.key, None, entry) for entry in entries)
    assert _since(window, 40) == list(range(41, 51))
    with pytest.raises(CompactedError):
        window.since(39)


def test_few_large_objects_stay_decoded() -> None:
    decoded: list[bytes] = []

    def decode(data: bytes) -> bytes:
        decoded.append(data)
        return data

    decoder = Decoder(decode, keep=100, most_bytes=1000)
    entries = [Entry("/registry/pods/a", n, b'{"metadata":{}}'.ljust(100), decoder) for n in range(1, 21)]
    for entry in entries:
        assert entry.object
    assert len(decoded) == 20
    assert entries[-10].object and len(decoded) == 20
    assert entries[0].object and len(decoded) == 21


def test_what_is_old_goes_but_for_the_last_hundred() -> None:
    window = _window(1000, *range(11, 311), start=10)
    assert window.forget(110) == 100
    assert _since(window, 110) == list(range(111, 311))
    with pytest.raises(CompactedError) as compacted:
        window.since(109)
    assert compacted.value.revision == 110
    assert window.forget(310) == 100 and window.forget(310) == 0
    assert _since(window, 210) == list(range(211, 311))


def test_what_is_old_goes_in_pieces() -> None:
    window = _window(5000, *range(1, 1301))
    assert [window.forget(1300) for _ in range(4)] == [500, 500, 200, 0]


def test_hardly_any_changes_are_never_old() -> None:
    window = _window(1000, 11, 12)
    assert window.forget(12) == 0 and _since(window, 10) == [11, 12]
