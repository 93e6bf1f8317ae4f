"""What happened to one object, and what a watcher with a selector is told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from podling.watch.entry import Entry

Match = Callable[[Entry], bool]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Change(NamedTuple):
    """The object before and after; None where there was none. Never both."""

    revision: int
    key: str
    old: Entry | None
    new: Entry | None


class Sight(NamedTuple):
    """An event as a watcher sees it: an object that leaves its sight is shown as it was, at that revision."""

    type: EventType
    entry: Entry
    revision: int


def sight(change: Change, match: Match | None) -> Sight | None:
    """An object that starts to match is ADDED, one that ceases to is DELETED, whatever was done to it."""
    old, new = change.old, change.new
    if match:
        old = old if old and match(old) else None
        new = new if new and match(new) else None
    if new:
        return Sight("MODIFIED" if old else "ADDED", new, change.revision)
    return Sight("DELETED", old, change.revision) if old else None
