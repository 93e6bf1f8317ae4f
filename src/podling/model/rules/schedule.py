"""The schedule of a CronJob: five fields as in cron, or `@daily` and its like, and a time zone. Faults are in
the words of Kubernetes' parser.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

ZONE = re.compile("(?:CRON_)?TZ=([^ ]*) (.*)", re.DOTALL)
NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY = "@every "
MINUTE, HOUR, NOON = 60, 3600, 12
LONGEST_SEARCH = 5
"""Years."""
UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": 10**9,
    "m": MINUTE * 10**9,
    "h": HOUR * 10**9,
}
"""In nanoseconds."""
MOST_DIGITS = 19
"""Of a number of 64 bits."""
DURATION = re.compile(r"(?P<number>[0-9]*\.?[0-9]*)(?P<unit>[^0-9.]*)")
LARGEST_INT = (1 << 63) - 1
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class CronField(NamedTuple):
    least: int
    most: int
    names: tuple[str, ...] = ()
    """The first stands for the least value."""


FIELDS = (
    CronField(0, 59),
    CronField(0, 23),
    CronField(1, 31),
    CronField(1, 12, MONTHS),
    CronField(0, 6, DAYS),
)


def names_zone(schedule: str) -> bool:
    return "TZ" in schedule


def zone_fault(name: str) -> str:
    """Why a time zone is not known; empty if it is."""
    try:
        _zone(name)
    except IsADirectoryError:
        return "is a directory"
    except (ValueError, KeyError, OSError):
        return f"unknown time zone {name}"
    return ""


def _zone(name: str) -> ZoneInfo | None:
    """As `Schedule.zone`. Raises ValueError, KeyError or OSError for a zone that is not known."""
    return None if name == "Local" else ZoneInfo(name or "UTC")


def schedule_fault(schedule: str) -> str:
    """Why a schedule cannot be read; empty if it can be."""
    try:
        read_schedule(schedule)
    except ValueError as error:
        return str(error)
    return ""


class Schedule(NamedTuple):
    """What a schedule's fields allow. With `every` the fields are empty, and it is so many seconds from one
    time to the next. `either_day`: whether it is enough that one of the two fields of days allows a day."""

    zone: ZoneInfo | None
    """None: that of the machine."""
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """0 is Sunday."""
    either_day: bool = False
    every: int = 0

    def next_after(self, at: int) -> int | None:
        """The first time later than `at`, both in seconds since 1970; None if there is none in five years.

        Where clocks are changed it is as Kubernetes' parser has it: an hour that is left out is not made up
        for, one that comes twice counts twice.
        """
        if self.every:
            return at + self.every
        if not (self.minutes and self.hours):
            return None
        at, is_begun = at + 1, False
        last_year = self._local(at).year + LONGEST_SEARCH
        while (local := self._local(at)).year <= last_year:
            if local.month not in self.months:
                later = local.year + local.month // 12, local.month % 12 + 1
                at, is_begun = self._instant(datetime(*later, 1)), True
            elif not self.allows_day(local):
                at, is_begun = self.next_day(local), True
            elif local.hour not in self.hours:
                begin = at if is_begun else self._instant(local.replace(minute=0, second=0))
                at, is_begun = begin + HOUR, True
            elif local.minute not in self.minutes or local.second:
                at, is_begun = at - at % MINUTE + MINUTE, True
            else:
                return at
        return None

    def allows_day(self, local: datetime) -> bool:
        """Of a local time."""
        by_date, by_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either_day else by_date and by_weekday

    def next_day(self, local: datetime) -> int:
        """The begin of the day after that of a local time: not midnight where clocks are changed then."""
        at = self._instant(datetime(local.year, local.month, local.day) + timedelta(days=1))
        hour = self._local(at).hour
        return at + (24 - hour if hour > NOON else -hour) * HOUR

    def _local(self, at: int) -> datetime:
        return datetime.fromtimestamp(at, self.zone).replace(tzinfo=None)

    def _instant(self, local: datetime) -> int:
        """Of two that a local time may stand for that of Go's `time.Date`."""
        as_utc = int(local.replace(tzinfo=UTC).timestamp())
        return as_utc - self._offset(as_utc - self._offset(as_utc))

    def _offset(self, at: int) -> int:
        return int(self._local(at).replace(tzinfo=UTC).timestamp()) - at


def read_schedule(schedule: str) -> Schedule:
    """Raises ValueError."""
    zone = None
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zoned = ZONE.fullmatch(schedule)
        if zoned is None:
            raise ValueError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        if fault := zone_fault(zoned[1]):
            raise ValueError(f"provided bad location {zoned[1]}: {fault}")
        zone, schedule = _zone(zoned[1]), zoned[2].strip()
    if schedule.startswith(EVERY):
        try:
            nanoseconds = go_nanoseconds(schedule.removeprefix(EVERY))
        except ValueError as error:
            raise ValueError(f"failed to parse duration {schedule}: {error}") from None
        return Schedule(zone, every=max(nanoseconds // 10**9, 1))
    if schedule.startswith("@"):
        if schedule not in NAMED:
            raise ValueError(f"unrecognized descriptor: {schedule}")
        schedule = NAMED[schedule]
    fields = schedule.split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    read = [read_field(field, within) for field, within in zip(fields, FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = (frozenset(one.values) for one in read)
    either = not (read[2].is_any or read[4].is_any)
    return Schedule(zone, minutes, hours, days, months, weekdays, either)


class ReadField(NamedTuple):
    values: set[int]
    is_any: bool
    """Whether `*` or `?` is among its parts, without a step."""


def read_field(text: str, within: CronField) -> ReadField:
    values, is_any = set[int](), False
    for part in filter(None, text.split(",")):
        allowed = read_range(part, within)
        values.update(allowed)
        is_any = is_any or (part[0] in "*?" and allowed.step == 1)
    return ReadField(values, is_any)


def read_range(text: str, within: CronField) -> range:
    """`*`, `*/STEP`, `LOW`, `LOW/STEP`, `LOW-HIGH` or `LOW-HIGH/STEP`."""
    span, *steps = text.split("/")
    low, *highs = span.split("-")
    start, end = within.least, within.most
    if low not in ("*", "?"):
        start = end = _number(low, within)
        if len(highs) > 1:
            raise ValueError(f"too many hyphens: {text}")
        if highs:
            end = _number(highs[0], within)
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _number(steps[0]) if steps else 1
    if steps and not highs:
        end = within.most
    if start < within.least:
        raise ValueError(f"beginning of range ({start}) below minimum ({within.least}): {text}")
    if end > within.most:
        raise ValueError(f"end of range ({end}) above maximum ({within.most}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step)


def _number(text: str, within: CronField | None = None) -> int:
    """A number, or one of the names of the field `within`."""
    if within is not None and text.lower() in within.names:
        return within.least + within.names.index(text.lower())
    if not re.fullmatch("[+-]?[0-9]+", text, re.ASCII):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    value = int(text) if len(text) < 25 else LARGEST_INT + 1
    if value > LARGEST_INT:
        raise ValueError(
            f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range'
        )
    if value < 0:
        raise ValueError(f"negative number ({value}) not allowed: {text}")
    return value


def go_nanoseconds(text: str) -> int:
    """A duration as Go's `time.ParseDuration` reads it. Raises ValueError."""
    invalid = f'time: invalid duration "{text}"'
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(invalid)
    at, found = 0, 0
    while at < len(rest):
        part = DURATION.match(rest, at)
        if part is None or part["number"] in ("", "."):
            raise ValueError(invalid)
        if not part["unit"]:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if part["unit"] not in UNITS:
            raise ValueError(f'time: unknown unit "{part["unit"]}" in duration "{text}"')
        whole, _, fraction = part["number"].partition(".")
        whole, fraction, unit = whole.lstrip("0"), fraction[:MOST_DIGITS], UNITS[part["unit"]]
        if len(whole) > MOST_DIGITS:
            raise ValueError(invalid)
        found += int(whole or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        if found > LARGEST_INT:
            raise ValueError(invalid)
        at = part.end()
    return -found if text.startswith("-") else found
