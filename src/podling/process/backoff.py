"""Exponential backoff: how long to wait before trying again what failed. Pure: the caller waits."""

from __future__ import annotations

import msgspec

_MOST_DOUBLINGS = 64
"""More than any backoff needs to reach its longest delay; a float overflows at 1024."""


class Backoff(msgspec.Struct, frozen=True):
    """Seconds: `first` after one failure, then twice as long each time, up to `longest`."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """Seconds before the next try after so many failures in a row."""
        if failures <= 0:
            return 0.0
        return min(self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.longest)

    def begin(self) -> Retries:
        return Retries(self)


class Retries:
    """The failures in a row of one thing that is tried again and again."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._failures = 0

    def next(self) -> float:
        """A try has failed. Returns the seconds before the next."""
        self._failures += 1
        return self._backoff.after(self._failures)

    def reset(self) -> None:
        """A try has succeeded."""
        self._failures = 0
