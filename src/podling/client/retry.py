"""How long to wait between two tries of what may fail for a while. Pure: whoever tries does the waiting."""

from __future__ import annotations


class GrowingWait:
    """Twice as long each time, from `first` to `longest` seconds."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._seconds = first

    def next(self) -> float:
        """Seconds to wait before the next try."""
        seconds, self._seconds = self._seconds, min(self._seconds * 2, self._longest)
        return seconds

    def reset(self) -> None:
        """A try has succeeded."""
        self._seconds = self._first
