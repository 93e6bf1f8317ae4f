"""What clients saw of several API servers on one etcd, and whether it could have been so: a pure checker.

Each write puts a value that no other write puts. Afterwards etcd itself says in which order they were made:
its log, against which everything that anybody was told is held. The revisions of etcd order all objects, so
one pass over what was recorded, in the order of time, is enough.

- A write that was acknowledged is in the log, at the revision that was told, and none is there twice. One
  that was refused is not there. One whose outcome nobody knows is there or not.
- A read that asked for what is current is as new as all that anybody was told of before it began.
- A watch brings every change of the log once, in order, from where it began to where it ended, whatever
  server it goes on at; a bookmark says that nothing is missing before it.
- Of those who lead, the times are apart.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple


class Logged(NamedTuple):
    """A change that etcd has made; `value` is None for a deletion."""

    revision: int
    key: str
    value: str | None


class Wrote(NamedTuple):
    """A write: `begin` and `end` are seconds of one clock, `value` None is for a deletion. `revision` is what
    was told of one that is `made`; that of a deletion nobody is told: 0."""

    begin: float
    end: float
    outcome: Literal["made", "refused", "unknown"]
    key: str
    value: str | None
    revision: int = 0


class Read(NamedTuple):
    """What was `found`, by key: the value and the revision at which it was written; that of a read of one
    object has that object alone, or nothing. `keys` are those that were asked for, None for all; `revision`
    is that of a list, 0 for one object."""

    begin: float
    end: float
    keys: Sequence[str] | None
    found: Mapping[str, tuple[str, int]]
    revision: int = 0


class Watched(NamedTuple):
    """What one watch brought after revision `after`, also over several connections, and up to which revision
    it was told, by events and bookmarks, to have brought all."""

    after: int
    told: Sequence[Logged]
    until: int


class Led(NamedTuple):
    begin: float
    end: float
    who: str


class History(NamedTuple):
    log: Sequence[Logged]
    """All changes of the keys, in order."""
    writes: Sequence[Wrote] = ()
    reads: Sequence[Read] = ()
    watches: Sequence[Watched] = ()
    leaders: Sequence[Led] = ()


def faults(history: History) -> list[str]:
    """What cannot have been so; empty if all of it can."""
    return [
        *_writes(history),
        *_reads(history),
        *(fault for watch in history.watches for fault in _watch(history.log, watch)),
        *_leaders(history.leaders),
    ]


def _writes(history: History) -> Iterator[str]:
    made: dict[str, list[Logged]] = {}
    for entry in history.log:
        if entry.value is not None:
            made.setdefault(entry.value, []).append(entry)
    known = {write.value for write in history.writes if write.value is not None}
    for value, entries in made.items():
        if len(entries) > 1:
            yield f"written more than once: {entries}"
        if value not in known:
            yield f"nobody wrote {entries[0]}"
    deletions = {entry.key for entry in history.log if entry.value is None}
    for write in history.writes:
        if write.value is None:
            if write.outcome == "made" and write.key not in deletions:
                yield f"lost: {write}"
            continue
        found = made.get(write.value, [])
        if write.outcome == "made" and found[:1] != [Logged(write.revision, write.key, write.value)]:
            yield f"lost, or told wrongly: {write}; etcd has {found}"
        if write.outcome == "refused" and found:
            yield f"made although it was refused: {write}; etcd has {found}"
    yield from _order(write for write in history.writes if write.outcome == "made" and write.revision)


def _order(writes: Iterable[Wrote]) -> Iterator[str]:
    """A write that began after another had ended comes after it."""
    writes = list(writes)
    known = Known((write.end, write.revision) for write in writes)
    for write in writes:
        if (least := known.before(write.begin)) >= write.revision:
            yield f"made in the past: {write}, after {least} was told"


class Known:
    """The highest revision that anybody was told of, by the time."""

    def __init__(self, told: Iterable[tuple[float, int]]) -> None:
        self._times: list[float] = []
        self._highest: list[int] = [0]
        for time, revision in sorted(told):
            self._times.append(time)
            self._highest.append(max(self._highest[-1], revision))

    def before(self, time: float) -> int:
        return self._highest[bisect.bisect_left(self._times, time)]


def _reads(history: History) -> Iterator[str]:
    by_key: dict[str, list[Logged]] = {}
    for entry in history.log:
        by_key.setdefault(entry.key, []).append(entry)
    known = Known(
        [(write.end, write.revision) for write in history.writes if write.outcome == "made"]
        + [
            (read.end, max(read.revision, *(at for _, at in read.found.values()), 0))
            for read in history.reads
        ]
    )
    for read in history.reads:
        least = known.before(read.begin)
        if read.keys is None and read.revision < least:
            yield f"stale: {read}, after {least} was told"
        for key in by_key.keys() | read.found.keys() if read.keys is None else read.keys:
            if not _could_be(by_key.get(key, ()), read.found.get(key), least, read.revision):
                yield f"stale, or never so: {key} of {read}, after {least} was told"


def _could_be(changes: Sequence[Logged], found: tuple[str, int] | None, least: int, at: int) -> bool:
    """Whether the key was as it was `found` at revision `at`; with 0, at `least` or any later one."""
    states = [Logged(0, "", None), *changes]
    for state, then in zip(states, [*(one.revision for one in states[1:]), None], strict=True):
        as_found = None if state.value is None else (state.value, state.revision)
        ends = then is None or then > (at or least)
        if as_found == found and ends and (not at or state.revision <= at):
            return True
    return False


def _watch(log: Sequence[Logged], watch: Watched) -> Iterator[str]:
    begin, end = (
        bisect.bisect_right(log, at, key=lambda one: one.revision) for at in (watch.after, watch.until)
    )
    wanted = list(log[begin:end])
    told = list(watch.told)
    if told == wanted:
        return
    if any(later.revision <= earlier.revision for earlier, later in pairwise(told)):
        yield f"a watch after {watch.after} went back or told twice: {told}"
    missing = [one for one in wanted if one not in told]
    never = [one for one in told if one not in wanted]
    yield f"a watch after {watch.after}, up to {watch.until}, left out {missing} and made up {never}"


def _leaders(led: Sequence[Led]) -> Iterator[str]:
    latest: Led | None = None
    for one in sorted(led):
        if latest is not None and one.begin < latest.end:
            yield f"two lead: {latest} and {one}"
        if latest is None or one.end > latest.end:
            latest = one
