"""When a CronJob's next Job is due. Pure; times are whole seconds since 1970."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime
from typing import NamedTuple

from podling.model.rules.schedule import Schedule, names_zone, read_schedule, zone_fault
from podling.model.time import parse_time
from podling.model.types.batch import CronJob

MANY = 100
"""Times that were missed, of which it is told that they are too many."""
PADDING = 0.1
"""Seconds that are waited longer, since clocks differ."""


class Due(NamedTuple):
    """`latest`: the last time that was not later than now, since the CronJob last made a Job."""

    since: int
    latest: int | None
    missed: int


def schedule_of(cron_job: CronJob) -> Schedule:
    """Raises ValueError."""
    spec, prefix = cron_job.spec, ""
    if spec.time_zone is not None and not names_zone(spec.schedule) and not zone_fault(spec.time_zone):
        prefix = f"TZ={spec.time_zone} "
    return read_schedule(prefix + spec.schedule)


def due(cron_job: CronJob, schedule: Schedule, now: datetime, *, within_deadline: bool) -> Due:
    """`within_deadline`: only of times for which a Job may still be made. Raises ValueError for a schedule
    that never comes."""
    at, spec = int(now.timestamp()), cron_job.spec
    begun = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    since = int(parse_time(begun).timestamp())
    if within_deadline and spec.starting_deadline_seconds is not None:
        since = max(since, at - spec.starting_deadline_seconds)
    first = schedule.next_after(since)
    if first is not None and at < first:
        return Due(since, None, 0)
    second = schedule.next_after(first) if first is not None else None
    if first is None or second is None:
        raise ValueError("time difference between two schedules is less than 1 second")
    if at < second:
        return Due(since, first, 0)
    missed = (at - first) // (second - first) + 1
    if schedule.every:
        return Due(since, first + (missed - 1) * schedule.every, missed)
    return Due(since, latest(schedule, first + (missed - 2) * (second - first), at), missed)


def latest(schedule: Schedule, since: int, now: int) -> int | None:
    """The last time of the schedule after `since` that is not later than `now`."""

    def is_later(at: int) -> bool:
        following = schedule.next_after(at)
        return following is None or following > now

    found = bisect_left(range(since, now + 1), True, key=is_later) - 1
    return schedule.next_after(since + found) if found >= 0 else None


def next_in(cron_job: CronJob, schedule: Schedule, now: datetime) -> float | None:
    """Seconds until the next time; None if there is none."""
    at = int(now.timestamp())
    try:
        found = due(cron_job, schedule, now, within_deadline=False)
    except ValueError:
        begin = at
    else:
        begin = found.latest or (at if found.missed else found.since)
    following = schedule.next_after(begin)
    return None if following is None else following + PADDING - now.timestamp()
