"""The values of options: read from a command line or a file, and written as the file has them. Pure.

Every reader is given text, or what YAML makes of a value, and raises ValueError with what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from podling.kubelet.options.signals import known_signal, parse_amount
from podling.model.quantity import Quantity
from podling.model.time import go_duration, parse_duration


def whole_number(least: int, most: int | None = None) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
            raise ValueError(f"{str(value)!r} is not a whole number")
        number = int(str(value))
        if most is not None and not least <= number <= most:
            raise ValueError(f"{number} must be between {least} and {most}, inclusive")
        if number < least:
            raise ValueError(f"{number} must be at least {least}")
        return number

    return read


def process_limit(value: object) -> int | None:
    """Nothing above 0 is no limit."""
    number = whole_number(-1)(value)
    return number if number > 0 else None


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)!r} is neither true nor false")
    return value


def duration(value: object) -> timedelta:
    """As Go writes it: `90s`, `1m30s`."""
    return parse_duration(str(value))


def some_time(value: object) -> timedelta:
    found = duration(value)
    if not found:
        raise ValueError(f"{str(value)!r} must be a positive duration")
    return found


def size(value: object) -> int:
    """Bytes."""
    try:
        found = Quantity(str(value)).value()
    except ValueError as error:
        raise ValueError(f"{str(value)!r} is not a size, such as 10Mi") from error
    if found <= 0:
        raise ValueError(f"{str(value)!r} must be more than nothing")
    return found


def amounts(value: object) -> Mapping[str, str]:
    """By signal, `SIGNAL<AMOUNT,...` on a command line."""
    return _amounts(value, "<")


def reclaimed(value: object) -> Mapping[str, str]:
    """By signal, `SIGNAL=AMOUNT,...` on a command line."""
    return _amounts(value, "=")


def _amounts(value: object, sign: str) -> Mapping[str, str]:
    found = _by_signal(value, sign, "AMOUNT")
    for text in found.values():
        parse_amount(text)
    return found


def grace_periods(value: object) -> Mapping[str, timedelta]:
    """By signal, `SIGNAL=DURATION,...` on a command line."""
    return {signal: some_time(text) for signal, text in _by_signal(value, "=", "DURATION").items()}


def _by_signal(value: object, sign: str, what: str) -> Mapping[str, str]:
    if isinstance(value, Mapping):
        pairs = [(str(signal), str(text)) for signal, text in value.items()]
    elif isinstance(value, str):
        parts = [part.partition(sign) for part in value.split(",") if part]
        if any(not separator or not text for _, separator, text in parts):
            raise ValueError(f"{value!r} is not SIGNAL{sign}{what},...")
        pairs = [(signal.strip(), text.strip()) for signal, _, text in parts]
    else:
        raise ValueError(f"{str(value)!r} does not map signals to values")
    return {known_signal(signal): text for signal, text in pairs}


def names(value: object) -> tuple[str, ...]:
    """`NAME,...` on a command line."""
    return tuple(filter(None, str(value).split(",")))


def repeated(value: object) -> tuple[str, ...]:
    """Of an option that may be given several times."""
    return tuple(value) if isinstance(value, (list, tuple)) else (str(value),)


def absolute_path(value: object) -> Path:
    """Relative to where podling is started: a detached one works elsewhere."""
    return Path(str(value)).absolute()


def written(value: Any) -> Any:
    """As JSON of kubelet.config.k8s.io/v1beta1 has it."""
    match value:
        case timedelta():
            return go_duration(value)
        case Mapping():
            return {name: written(one) for name, one in value.items()}
        case tuple():
            return list(value)
        case Quantity() | Path():
            return str(value)
        case _:
            return value


def written_limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def written_size(count: int) -> str:
    return str(Quantity.of_bytes(count))
