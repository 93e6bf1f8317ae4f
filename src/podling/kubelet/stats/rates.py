"""How fast something that only grows has grown of late: between one look and the next."""

from __future__ import annotations

from typing import NamedTuple

SHORTEST = 1.0
"""Seconds below which two looks are too near to each other to tell."""


class _Look(NamedTuple):
    at: float
    value: int
    rate: int | None


class Rates:
    def __init__(self) -> None:
        self._looks: dict[str, _Look] = {}

    def rate(self, key: str, value: int, at: float) -> int | None:
        """A second, since `key` was looked at before; None at the first look. `at` is in seconds."""
        before = self._looks.get(key)
        if before is None or value < before.value:
            self._looks[key] = _Look(at, value, None)
            return None
        if at - before.at < SHORTEST:
            return before.rate
        rate = int((value - before.value) / (at - before.at))
        self._looks[key] = _Look(at, value, rate)
        return rate

    def keep(self, keys: set[str]) -> None:
        """Forget all others."""
        self._looks = {key: look for key, look in self._looks.items() if key in keys}
