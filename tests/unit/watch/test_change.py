"""What a watcher with a selector is told of a change (R-SYS-1: selectors on watches)."""

from __future__ import annotations

import pytest

from podling.watch.entry import Change, Decoder, Entry, SelectedEvent, select


def _entry(revision: int, value: bytes) -> Entry:
    return Entry("/registry/pods/a", revision, b'"metadata":{}' + value, Decoder(bytes))


def _is_red(entry: Entry) -> bool:
    return entry.value.endswith(b"red")


RED, RED_AGAIN, BLUE, BLUE_AGAIN = (
    _entry(n, v) for n, v in ((3, b"red"), (5, b"red"), (3, b"blue"), (5, b"blue"))
)

TABLE = [
    # before, after, seen without a selector, seen by one who selects red
    (None, RED_AGAIN, ("ADDED", RED_AGAIN), ("ADDED", RED_AGAIN)),
    (None, BLUE_AGAIN, ("ADDED", BLUE_AGAIN), None),
    (RED, RED_AGAIN, ("MODIFIED", RED_AGAIN), ("MODIFIED", RED_AGAIN)),
    (RED, BLUE_AGAIN, ("MODIFIED", BLUE_AGAIN), ("DELETED", RED)),
    (BLUE, RED_AGAIN, ("MODIFIED", RED_AGAIN), ("ADDED", RED_AGAIN)),
    (BLUE, BLUE_AGAIN, ("MODIFIED", BLUE_AGAIN), None),
    (RED, None, ("DELETED", RED), ("DELETED", RED)),
    (BLUE, None, ("DELETED", BLUE), None),
]


@pytest.mark.parametrize(("old", "new", "plain", "selected"), TABLE)
def test_what_is_seen(
    old: Entry | None, new: Entry | None, plain: tuple[str, Entry], selected: tuple[str, Entry] | None
) -> None:
    change = Change(5, "/registry/pods/a", old, new)
    assert select(change, None) == SelectedEvent(*plain, revision=5)  # type: ignore[arg-type]
    assert select(change, _is_red) == (SelectedEvent(*selected, revision=5) if selected else None)  # type: ignore[arg-type]
