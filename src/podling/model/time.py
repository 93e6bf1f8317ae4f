"""Times as the API writes them and as clients may, and `Clock` for code that depends on the time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from podling.model.remembered import remembered

LAYOUTS = {"date-time": "2006-01-02T15:04:05Z07:00", "micro-time": "2006-01-02T15:04:05.000000Z07:00"}
"""The formats of times, and how Go writes each layout."""
ZERO = "0001-01-01T00:00:00Z"
"""The time that Go takes for none. (Of a MicroTime that is read it does not.)"""
_ELEMENTS = (
    *(("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T")),
    *(("15", r"\d\d?"), (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d")),
)
"""The elements of both layouts up to the fraction, and what each matches."""
_FRACTIONS = {"date-time": r"([.,]\d+)?", "micro-time": r"[.,]\d{6}"}
_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ms|s|m|h))+|0")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY
_OFFSET = ("Z07:00", r"Z|[+-]\d\d:\d\d")


class TimeError(ValueError):
    """A string that is not a time; the message is that of Go's parser."""


class Clock(Protocol):
    """`now()` is the time in UTC, with time zone. Tests pass a clock that they move by hand."""

    def now(self) -> datetime: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """meta/v1 Time: whole seconds, `2026-01-02T03:04:05Z`."""
    # Without the offset, which takes longer to leave out than to write.
    return f"{_in_utc(moment).isoformat('T', 'seconds')[:-6]}Z"


def micro_time(moment: datetime) -> str:
    """meta/v1 MicroTime: `2026-01-02T03:04:05.000006Z`."""
    return f"{_in_utc(moment).isoformat('T', 'microseconds')[:-6]}Z"


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def moved(moment: datetime, by: timedelta) -> datetime:
    """So much later, or the last moment that there is, or the first: clients may say any."""
    try:
        return moment + by
    except OverflowError:
        return (datetime.max if by > timedelta(0) else datetime.min).replace(tzinfo=UTC)


def parse_time(text: str) -> datetime:
    """Parse meta/v1 Time or MicroTime with any offset: with time zone, in UTC. Nanoseconds are dropped.
    Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    return moment.astimezone(UTC)


_WRITERS: dict[str, Callable[[datetime], str]] = {"date-time": rfc3339, "micro-time": micro_time}


@remembered(4096)
def settled(text: str, form: str) -> str:
    """`text` in the spelling of `form` (`date-time` or `micro-time`). Raises TimeError."""
    try:
        # Most times have it already: their client read them here.
        if _WRITERS[form](datetime.fromisoformat(text)) == text:
            return text
    except (ValueError, OverflowError):
        pass
    rest = text
    for element, pattern in (*_ELEMENTS, (".000000", _FRACTIONS[form]), _OFFSET, ("", r"\Z")):
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            raise TimeError(
                f'parsing time "{text}" as "{LAYOUTS[form]}": cannot parse "{rest}" as "{element}"'
            )
        rest = rest[match.end() :]
    try:
        # The hour may be of one digit.
        return _WRITERS[form](parse_time(re.sub(r"T(\d):", r"T0\1:", text)))
    except (ValueError, OverflowError) as error:
        raise TimeError(f'parsing time "{text}": {error}') from error


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


def parse_duration(text: str) -> timedelta:
    """A duration as Go writes it: `90s`, `1m30s`. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration, such as 1m30s")
    return timedelta(seconds=sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(text)))


def human_duration(seconds: float) -> str:
    """A duration as kubectl shows it, in at most two units: `45s`, `3m20s`, `2d4h`. Clock skew up to a second
    counts as 0."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    return _two(whole, _YEAR, "y", _DAY, "d") if whole < 8 * _YEAR else f"{whole // _YEAR}y"


def _two(seconds: int, big: int, big_name: str, small: int, small_name: str) -> str:
    rest = seconds % big // small
    return f"{seconds // big}{big_name}{rest}{small_name}" if rest else f"{seconds // big}{big_name}"
