"""How long to wait before trying again, as a pure function of what is recorded (R-INIT-2): 10 s, doubling,
at most 5 min.

Nothing is kept in memory. Each instance of a container carries, as an annotation, the number of failures in
a row that came before it; the delay after it ends follows from that number and its own times. The first
failure costs no delay, and an instance that ran for more than ten minutes clears the record, as in
Kubernetes.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from podling.kubelet.observed import ObservedContainer, StartFailure

INITIAL = timedelta(seconds=10)
MAXIMUM = timedelta(minutes=5)
FORGIVEN_AFTER = timedelta(minutes=10)
_DOUBLINGS = 5
"""10 s doubled five times is over the maximum: no need to compute further."""

SOON = timedelta(seconds=1)

SHOWN = timedelta(seconds=2)
"""How long an exit or a failed pull is itself the status before its back-off is (Error, then
CrashLoopBackOff)."""


def delay(failures: int) -> timedelta:
    if failures <= 0:
        return timedelta(0)
    return min(INITIAL * (1 << min(failures - 1, _DOUBLINGS)), MAXIMUM)


def crashes_after(ended: ObservedContainer) -> int:
    """The failures in a row, this instance's included. One that never started has the epoch as its start."""
    started = max(ended.started_at, ended.created_at)
    return 1 if ended.finished_at - started > FORGIVEN_AFTER else ended.crashes + 1


def restart_delay(ended: ObservedContainer) -> timedelta:
    return delay(crashes_after(ended) - 1)


def restart_at(ended: ObservedContainer) -> datetime:
    return ended.finished_at + restart_delay(ended)


def retry_at(failure: StartFailure) -> datetime:
    """Failures that do not count are no reason to wait longer, only not to be tried at once."""
    return failure.at + max(delay(failure.count), SOON)
