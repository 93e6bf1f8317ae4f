"""Columns and cells that many tables share, and durations as kubectl shows them: `45s`, `3m20s`, `5h`,
`2d4h`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import itemgetter

from podling.apiserver.kinds.kind import Column
from podling.model.time import parse_time
from podling.model.types.meta import LabelSelector

NONE = "<none>"
UNSET = "<unset>"

NAME = Column("Name", "string", "name", "Unique within its namespace and kind; cannot be changed.")
AGE = Column("Age", description="Time since the object was created.")
CREATED_AT = Column("Created At", "date", description="When the object was created.")

UNKNOWN = "<unknown>"

EXPRESSIONS = {
    "In": "{key} in {values}",
    "NotIn": "{key} notin {values}",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def or_none(text: str) -> str:
    return text or NONE


def joined(items: Iterable[str], separator: str = ",") -> str:
    return separator.join(items) or NONE


def labels_text(labels: dict[str, str]) -> str:
    """Labels as a selector: `a=b,c=d`."""
    return joined(f"{key}={value}" for key, value in sorted(labels.items()))


def selector_text(selector: LabelSelector | None) -> str:
    """As `metav1.FormatLabelSelector` writes it: requirements by key, `a=b,c in (d,e),!f`."""
    if selector is None:
        return NONE
    said = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        values = f"({','.join(sorted(one.values))})"
        said.append((one.key, EXPRESSIONS[one.operator].format(key=one.key, values=values)))
    return joined(text for _, text in sorted(said, key=itemgetter(0)))


def human_duration(seconds: float) -> str:
    """A duration in at most two units, as `HumanDuration` of apimachinery. Clock skew up to a second counts
    as 0."""
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


def age(since: str | None, now: datetime) -> str:
    """The age of an API timestamp; `<unknown>` if it is empty."""
    return human_duration((now - parse_time(since)).total_seconds()) if since else UNKNOWN
