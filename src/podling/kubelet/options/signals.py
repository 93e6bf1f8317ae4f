"""Eviction signals and amounts, as thresholds name them: `memory.available<100Mi`, `nodefs.available<10%`."""

from __future__ import annotations

import msgspec

from podling.model.quantity import Quantity

MEMORY, ALLOCATABLE_MEMORY = "memory.available", "allocatableMemory.available"
NODEFS, NODEFS_INODES = "nodefs.available", "nodefs.inodesFree"
IMAGEFS, IMAGEFS_INODES = "imagefs.available", "imagefs.inodesFree"
PIDS = "pid.available"

SETTABLE = frozenset({MEMORY, NODEFS, NODEFS_INODES, IMAGEFS, IMAGEFS_INODES, PIDS})
"""Signals that a user sets thresholds for; allocatable memory follows the memory of the node."""


class ThresholdError(ValueError):
    """A threshold that says nothing."""


class Amount(msgspec.Struct, frozen=True):
    """So many, or so much of all there is."""

    count: int = 0
    share: float = 0.0

    def of(self, capacity: int) -> int:
        return self.count + int(capacity * self.share)


def parse_amount(text: str) -> Amount:
    """`100Mi` or `10%`. Raises ThresholdError."""
    try:
        if text.endswith("%"):
            amount = Amount(share=float(text[:-1]) / 100)
        else:
            amount = Amount(count=Quantity(text).value())
    except ValueError as error:
        raise ThresholdError(f"{text!r} is neither a quantity nor a percentage") from error
    if amount.share < 0 or amount.count < 0:
        raise ThresholdError(f"{text!r} is less than nothing")
    return amount


def known_signal(signal: str) -> str:
    """The signal, if it is one that thresholds are set for. Raises ThresholdError."""
    if signal not in SETTABLE:
        raise ThresholdError(f"unknown eviction signal {signal}")
    return signal
