"""The last changes of a resource, in order: where a watch may resume without listing again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from podling.storage.interface import CompactedError
from podling.watch.change import Change


class Window:
    """Every change after `start`, at most `size` of them: a further one pushes the oldest out."""

    def __init__(self, size: int, start: int = 0) -> None:
        self._size = size
        self._start = start
        self._changes: deque[Change] = deque()

    def extend(self, changes: Iterable[Change]) -> None:
        self._changes.extend(changes)
        while len(self._changes) > self._size:
            self._start = self._changes.popleft().revision

    def since(self, revision: int) -> Sequence[Change]:
        """The changes above `revision`, oldest first. Raises CompactedError."""
        if revision < self._start:
            raise CompactedError(self._start)
        newest_first: list[Change] = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            newest_first.append(change)
        return newest_first[::-1]
