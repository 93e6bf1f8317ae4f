"""The times in a request: each must be a time, and is kept in the one spelling Kubernetes keeps it in.

Times are plain strings in the structs, so that reading stored objects costs nothing; what a client sends is
looked at here once, when it is accepted.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from podling.model.fields import fields_of, is_struct, item_type
from podling.model.remembered import remembered
from podling.model.time import micro_time, parse_time, rfc3339

LAYOUTS = {"date-time": "2006-01-02T15:04:05Z07:00", "micro-time": "2006-01-02T15:04:05.000000Z07:00"}
_WRITERS: dict[str, Callable[[datetime], str]] = {"date-time": rfc3339, "micro-time": micro_time}
_FRACTIONS = {"date-time": r"(\.\d+)?", "micro-time": r"\.\d{6}"}
_DAY = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"))
_HOUR = (("15", r"\d\d"), (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"))


class TimeError(ValueError):
    """A string that is not a time; the message is that of Go's parser."""


class _Step(NamedTuple):
    """A field that is a time or a map of times, or that holds structs with times in them."""

    attribute: str
    format: str
    is_list: bool


def settle_times(obj: msgspec.Struct) -> None:
    """Rewrite every time in `obj` as UTC in the precision of its field. Raises TimeError."""
    for step in _steps(type(obj)):
        value = getattr(obj, step.attribute)
        if not value:
            continue
        if step.format and isinstance(value, dict):
            setattr(obj, step.attribute, {key: settled(text, step.format) for key, text in value.items()})
        elif step.format:
            setattr(obj, step.attribute, settled(value, step.format))
        else:
            for part in value if step.is_list else (value,):
                settle_times(part)


@functools.cache
def _steps(owner: type[msgspec.Struct]) -> tuple[_Step, ...]:
    return tuple(
        _Step(field.attribute, field.format if field.format in LAYOUTS else "", _is_list(field.type))
        for field in fields_of(owner).values()
        if field.format in LAYOUTS or _holds_times(field.type)
    )


def _holds_times(type_: Any) -> bool:
    inner = item_type(type_) if _is_list(type_) else type_
    return is_struct(inner) and bool(_steps(inner))


def _is_list(type_: Any) -> bool:
    return typing.get_origin(type_) is list


@remembered(4096)
def settled(text: str, form: str) -> str:
    """`text` in the spelling of `form` (`date-time` or `micro-time`). Raises TimeError."""
    if _is_settled(text, form):
        return text
    for element, rest in _misfits(text, form):
        raise TimeError(f'parsing time "{text}" as "{LAYOUTS[form]}": cannot parse "{rest}" as "{element}"')
    try:
        return _WRITERS[form](parse_time(text))
    except (ValueError, OverflowError) as error:
        raise TimeError(f'parsing time "{text}": {error}') from error


def _is_settled(text: str, form: str) -> bool:
    """Most times come as they are kept: written by a client that read them here."""
    try:
        return _WRITERS[form](datetime.fromisoformat(text)) == text
    except (ValueError, OverflowError):
        return False


def _misfits(text: str, form: str) -> typing.Iterator[tuple[str, str]]:
    """The first element of the layout that `text` does not follow, and what stands there instead."""
    rest = text
    for element, pattern in (*_DAY, *_HOUR, (".000000", _FRACTIONS[form]), ("Z07:00", r"Z|[+-]\d\d:\d\d")):
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            yield element, rest
            return
        rest = rest[match.end() :]
    if rest:
        yield "", rest
