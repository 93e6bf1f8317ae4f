"""Times as the API writes them, and `Clock`, which code that depends on the time is given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """`now()` is the time in UTC, with time zone. Tests pass a clock that they move by hand."""

    def now(self) -> datetime: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """meta/v1 Time: whole seconds, `2026-01-02T03:04:05Z`."""
    return f"{_in_utc(moment).isoformat(timespec='seconds')}Z"


def micro_time(moment: datetime) -> str:
    """meta/v1 MicroTime: `2026-01-02T03:04:05.000006Z`."""
    return f"{_in_utc(moment).isoformat(timespec='microseconds')}Z"


def _in_utc(moment: datetime) -> datetime:
    """Without its time zone, which is longer to write than the time."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.replace(tzinfo=None)


def parse_time(text: str) -> datetime:
    """Parse meta/v1 Time or MicroTime with any offset: with time zone, in UTC. Nanoseconds are dropped.
    Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    return moment.astimezone(UTC)


def parse_optional(text: str) -> datetime | None:
    """As `parse_time`; None for the empty string of an unset field."""
    return parse_time(text) if text else None


def go_duration(duration: timedelta) -> str:
    """As Go's time.Duration prints it, cut to milliseconds: `0s`, `12ms`, `1.5s`, `1m2.003s`, `1h0m0s`."""
    total = duration // timedelta(milliseconds=1)
    if total < 1000:
        return f"{total}ms" if total else "0s"
    minutes, rest = divmod(total, 60_000)
    seconds = f"{rest // 1000}.{rest % 1000:03d}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds
