"""The schedule of a CronJob: five fields as in cron, or `@daily` and its like, and a time zone. Faults are in
the words of Kubernetes' parser.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from zoneinfo import ZoneInfo

ZONE = re.compile("(?:CRON_)?TZ=([^ ]*) (.*)", re.DOTALL)
NAMED = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
EVERY = "@every "
UNITS = ("ns", "us", "µs", "μs", "ms", "s", "m", "h")
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
        ZoneInfo(name or "UTC")
    except IsADirectoryError:
        return "is a directory"
    except (ValueError, KeyError, OSError):
        return f"unknown time zone {name}"
    return ""


def schedule_fault(schedule: str) -> str:
    """Why a schedule cannot be read; empty if it can be."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zoned = ZONE.fullmatch(schedule)
        if zoned is None:
            return "invalid schedule format: runtime error: slice bounds out of range [:-1]"
        if fault := zone_fault(zoned[1]):
            return f"provided bad location {zoned[1]}: {fault}"
        schedule = zoned[2].strip()
    try:
        _read(schedule)
    except ValueError as error:
        return str(error)
    return ""


def _read(schedule: str) -> None:
    if schedule.startswith(EVERY):
        if fault := _duration_fault(schedule.removeprefix(EVERY)):
            raise ValueError(f"failed to parse duration {schedule}: {fault}")
        return
    if schedule.startswith("@"):
        if schedule not in NAMED:
            raise ValueError(f"unrecognized descriptor: {schedule}")
        return
    fields = schedule.split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, within in zip(fields, FIELDS, strict=True):
        for part in filter(None, field.split(",")):
            _read_range(part, within)


def _read_range(text: str, within: CronField) -> None:
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


def _duration_fault(text: str) -> str:
    """Why Go's `time.ParseDuration` refuses; empty if it does not."""
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if rest == "0":
        return ""
    if not rest:
        return f'time: invalid duration "{text}"'
    at = 0
    while at < len(rest):
        found = DURATION.match(rest, at)
        if found is None or found["number"] in ("", "."):
            return f'time: invalid duration "{text}"'
        if not found["unit"]:
            return f'time: missing unit in duration "{text}"'
        if found["unit"] not in UNITS:
            return f'time: unknown unit "{found["unit"]}" in duration "{text}"'
        at = found.end()
    return ""
