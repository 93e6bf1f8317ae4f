"""The operators of CEL, and conversions: what its standard has for every environment."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from podling.apiserver.cel.values import (
    LARGEST,
    LARGEST_UNSIGNED,
    SMALLEST,
    TYPES,
    CelError,
    Duration,
    Meter,
    Timestamp,
    TypeValue,
    UInt,
    compare,
    equal,
    found,
    integer,
    is_alike,
    is_among,
    no_overload,
    type_of,
    unsigned,
    without_trait,
)

SECOND = 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = -62135596800 * SECOND, 253402300800 * SECOND - 1
LONGEST = LARGEST
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND}
_UNITS |= {"m": 60 * SECOND, "h": 3600 * SECOND}
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_UNSIGNED = re.compile(r"\d+", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?|nan))", re.ASCII)
_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_OFFSET = re.compile(r"([+-])?(\d\d):(\d\d)", re.ASCII)
_RECEIVERS = (str, Timestamp, Duration)
"""Types that refuse any operator in the same words."""
_ADDERS = (*_RECEIVERS, int, UInt, float, bytes, list)
_SUBTRACTORS = (*_RECEIVERS, int, UInt, float)
_COMPARERS = (bool, int, UInt, float, str, bytes, Timestamp, Duration)


_OF_TIME = {
    "getFullYear": lambda at: at.year,
    "getMonth": lambda at: at.month - 1,
    "getDayOfYear": lambda at: at.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDate": lambda at: at.day,
    "getDayOfWeek": lambda at: at.isoweekday() % 7,
    "getHours": lambda at: at.hour,
    "getMinutes": lambda at: at.minute,
    "getSeconds": lambda at: at.second,
    "getMilliseconds": lambda at: at.microsecond // 1000,
}
_OF_SPAN = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 10**6,
}


def add(meter: Meter, one: Any, other: Any) -> Any:
    type_ = type(one)
    if type_ is type(other):
        if type_ is int:
            return integer(one + other)
        if type_ is str or type_ is bytes or type_ is list:
            meter.hold(len(one) + len(other))
            return one + other
        if type_ is float:
            return one + other
        if type_ is UInt:
            return unsigned(int(one) + int(other))
        if type_ is Duration:
            return _duration(one.nanos + other.nanos)
    elif (type_ is Timestamp and type(other) is Duration) or (type_ is Duration and type(other) is Timestamp):
        offset = getattr(one if type_ is Timestamp else other, "offset", 0)
        return _timestamp(one.nanos + other.nanos, offset)
    raise no_overload("" if type_ in _ADDERS else "_+_")


def subtract(meter: Meter, one: Any, other: Any) -> Any:
    types = type(one), type(other)
    if types == (int, int):
        return integer(one - other)
    if types == (UInt, UInt):
        return unsigned(int(one) - int(other))
    if types == (float, float):
        return one - other
    if types in ((Timestamp, Timestamp), (Duration, Duration)):
        return _duration(one.nanos - other.nanos)
    if types == (Timestamp, Duration):
        return _timestamp(one.nanos - other.nanos, one.offset)
    raise no_overload("" if types[0] in _SUBTRACTORS else "_-_")


def multiply(meter: Meter, one: Any, other: Any) -> Any:
    types = type(one), type(other)
    if types == (int, int):
        return integer(one * other)
    if types == (UInt, UInt):
        return unsigned(int(one) * int(other))
    if types == (float, float):
        return one * other
    raise no_overload("" if types[0] in _SUBTRACTORS else "_*_")


def divide(meter: Meter, one: Any, other: Any) -> Any:
    types = type(one), type(other)
    if types == (float, float):
        if other:
            return one / other
        if not one or one != one:
            return math.nan
        return math.copysign(math.inf, one) * math.copysign(1, other)
    if types in ((int, int), (UInt, UInt)):
        if not other:
            raise CelError("division by zero")
        size = abs(one) // abs(other)
        return UInt(size) if types[0] is UInt else integer(size if (one < 0) == (other < 0) else -size)
    raise no_overload("" if types[0] in _SUBTRACTORS else "_/_")


def modulo(meter: Meter, one: Any, other: Any) -> Any:
    types = type(one), type(other)
    if types in ((int, int), (UInt, UInt)):
        if not other:
            raise CelError("modulus by zero")
        if one == SMALLEST and other == -1:
            raise CelError("integer overflow")
        rest = abs(one) % abs(other)
        return UInt(rest) if types[0] is UInt else (-rest if one < 0 else rest)
    raise no_overload("" if types[0] in (*_RECEIVERS, int, UInt) else "_%_")


def negate(meter: Meter, one: Any) -> Any:
    if type(one) is int:
        return integer(-one)
    if type(one) is float:
        return -one
    if type(one) is Duration:
        return _duration(-one.nanos)
    raise no_overload("" if type(one) in (*_RECEIVERS, bool) else "-_")


def inverted(meter: Meter, one: Any) -> bool:
    if type(one) is bool:
        return not one
    raise no_overload()


def is_unequal(meter: Meter, one: Any, other: Any) -> bool:
    return not is_alike(meter, one, other, unlike=False)


def _ordered(meter: Meter, function: str, one: Any, other: Any) -> int:
    if type(one) not in _COMPARERS:
        raise no_overload(function)
    if type(one) is str or type(one) is bytes:
        meter.hold(len(one))
    return compare(one, other)


def is_less(meter: Meter, one: Any, other: Any) -> bool:
    return _ordered(meter, "_<_", one, other) < 0


def is_less_or_equal(meter: Meter, one: Any, other: Any) -> bool:
    return _ordered(meter, "_<=_", one, other) <= 0


def is_greater(meter: Meter, one: Any, other: Any) -> bool:
    return _ordered(meter, "_>_", one, other) > 0


def is_greater_or_equal(meter: Meter, one: Any, other: Any) -> bool:
    return _ordered(meter, "_>=_", one, other) >= 0


def is_in(meter: Meter, one: Any, many: Any) -> bool:
    if type(many) is list:
        meter.hold(len(many))
        return is_among(meter, one, many)
    if type(many) is dict:
        return found(many, one)[0]
    raise no_overload()


def size(meter: Meter, value: Any) -> int:
    if type(value) in (str, bytes, list, dict):
        return len(value)
    raise without_trait("size", value)


def dyn(meter: Meter, value: Any) -> Any:
    return value


def kind(meter: Meter, value: Any) -> TypeValue:
    return TypeValue(type_of(value))


def _unconverted(value: Any, to: str) -> CelError:
    return CelError(f"type conversion error from '{type_of(value)}' to '{to}'")


def to_int(meter: Meter, value: Any) -> int:
    type_ = type(value)
    if type_ is int:
        return int(value)
    if type_ is UInt:
        return integer(int(value))
    if type_ is float:
        if value != value or not -9223372036854775808.0 < value < 9223372036854775808.0:
            raise CelError("integer overflow")
        return int(value)
    if type_ is Timestamp:
        return int(value.nanos // SECOND)
    if type_ is Duration:
        return int(value.nanos)
    if type_ is str and len(value) < 100 and _INTEGER.fullmatch(value) and SMALLEST <= int(value) <= LARGEST:
        return int(value)
    if type_ is str:
        raise _unconverted(value, "int")
    raise no_overload("int", value)


def to_uint(meter: Meter, value: Any) -> UInt:
    type_ = type(value)
    if type_ is UInt or type_ is int:
        return unsigned(int(value))
    if type_ is float:
        if value != value or not 0 <= value < 18446744073709551616.0:
            raise CelError("unsigned integer overflow")
        return UInt(value)
    if type_ is str and len(value) < 100 and _UNSIGNED.fullmatch(value) and int(value) <= LARGEST_UNSIGNED:
        return UInt(value)
    if type_ is str:
        raise _unconverted(value, "uint")
    raise no_overload("uint", value)


def to_double(meter: Meter, value: Any) -> float:
    if type(value) in (int, UInt, float):
        return float(value)
    if type(value) is str:
        if len(value) < 1000 and _DOUBLE.fullmatch(value):
            made = float(value)
            if not math.isinf(made) or "i" in value.lower():
                return made
        raise _unconverted(value, "double")
    raise no_overload("double", value)


def to_bool(meter: Meter, value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str:
        if value not in _BOOLS:
            raise _unconverted(value, "bool")
        return _BOOLS[value]
    raise no_overload("bool", value)


def to_bytes(meter: Meter, value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if type(value) is str:
        return value.encode(errors="surrogatepass")
    raise no_overload("bytes", value)


def to_string(meter: Meter, value: Any) -> str:
    type_ = type(value)
    if type_ is str:
        return str(value)
    if type_ is bool:
        return "true" if value else "false"
    if type_ is int or type_ is UInt:
        return str(int(value))
    if type_ is float:
        return double_text(value)
    if type_ is bytes:
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if type_ is Timestamp:
        return timestamp_text(value)
    if type_ is Duration:
        return duration_text(value)
    if hasattr(value, "to_text"):
        return str(value.to_text())
    raise no_overload("string", value)


def to_timestamp(meter: Meter, value: Any) -> Timestamp:
    if type(value) is Timestamp:
        return value
    if type(value) is int:
        return _timestamp(value * SECOND, 0)
    if type(value) is str:
        if parts := _TIME.fullmatch(value):
            try:
                at = datetime(*(int(parts[i]) for i in range(1, 7)), tzinfo=UTC)  # type: ignore[arg-type,misc]
            except ValueError:
                raise _unconverted(value, Timestamp.cel_type) from None
            offset = 0
            if parts[9] and (int(parts[10]) > 23 or int(parts[11]) > 59):
                raise _unconverted(value, Timestamp.cel_type)
            if parts[9]:
                offset = (int(parts[10]) * 3600 + int(parts[11]) * 60) * (-1 if parts[9] == "-" else 1)
            whole = (at - EPOCH) // timedelta(seconds=1) - offset
            return _timestamp(whole * SECOND + int((parts[7] or "0")[:9].ljust(9, "0")), offset)
        raise _unconverted(value, Timestamp.cel_type)
    raise no_overload("timestamp", value)


def to_duration(meter: Meter, value: Any) -> Duration:
    if type(value) is Duration:
        return value
    if type(value) is int:
        # The function takes an int, and then knows no way from one to a duration.
        raise _unconverted(value, Duration.cel_type)
    if type(value) is str:
        nanos = parsed_duration(value) if len(value) <= 100 else None
        if nanos is None or not SMALLEST <= nanos <= LARGEST:
            raise _unconverted(value, Duration.cel_type)
        return Duration(nanos)
    raise no_overload("duration", value)


def parsed_duration(text: str) -> int | None:
    """Nanoseconds of a duration as Go writes it; None if it is none."""
    if not _DURATION.fullmatch(text):
        return None
    nanos = 0
    for whole, fraction, unit in _PART.findall(text):
        scale = _UNITS[unit]
        nanos += int(whole or "0") * scale + int(fraction or "0") * scale // 10 ** len(fraction)
    return -nanos if text.startswith("-") else nanos


def _timestamp(nanos: int, offset: int) -> Timestamp:
    if not EARLIEST <= nanos <= LATEST:
        raise CelError("timestamp overflow")
    return Timestamp(nanos, offset)


def _duration(nanos: int) -> Duration:
    if not SMALLEST <= nanos <= LARGEST:
        raise CelError("integer overflow")
    return Duration(nanos)


def double_text(value: float) -> str:
    """As Go writes it (`%v`)."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if not value:
        return "-0" if math.copysign(1, value) < 0 else "0"
    digits, _, exponent = _shortest(value)
    power = int(exponent)
    sign = "-" if value < 0 else ""
    if -5 < power - 1 < 6:
        if power <= 0:
            return f"{sign}0.{'0' * -power}{digits}"
        if len(digits) <= power:
            return f"{sign}{digits.ljust(power, '0')}"
        return f"{sign}{digits[:power]}.{digits[power:]}"
    rest = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{rest}e{power - 1:+03d}"


def _shortest(value: float) -> tuple[str, str, str]:
    """Digits, and the power of ten that `0.digits` is multiplied by."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    power = len(whole) + int(exponent or "0")
    stripped = digits.lstrip("0")
    power -= len(digits) - len(stripped)
    return stripped.rstrip("0") or "0", "", str(power)


def timestamp_text(at: Timestamp) -> str:
    """RFC 3339 with as much of the fraction as there is."""
    whole, fraction = divmod(at.nanos + at.offset * SECOND, SECOND)
    try:
        moment = EPOCH + timedelta(seconds=whole)
    except OverflowError:
        raise CelError("timestamp overflow") from None
    told = moment.strftime("%m-%dT%H:%M:%S")
    part = f".{fraction:09d}".rstrip("0") if fraction else ""
    minutes = abs(at.offset) // 60
    zone = f"{'-' if at.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if at.offset else "Z"
    return f"{moment.year:04d}-{told}{part}{zone}"


def duration_text(span: Duration) -> str:
    """In seconds: `5400s`, `0.5s`."""
    return f"{_plain(span.nanos / SECOND)}s"


def _plain(value: float) -> str:
    """Without an exponent."""
    digits, _, exponent = _shortest(value) if value else ("0", "", "1")
    power, sign = int(exponent), "-" if value < 0 else ""
    if power <= 0:
        return f"{sign}0.{'0' * -power}{digits}"
    if len(digits) <= power:
        return f"{sign}{digits.ljust(power, '0')}"
    return f"{sign}{digits[:power]}.{digits[power:]}"


def _in_zone(at: Timestamp, zone: Any) -> datetime:
    moment = EPOCH + timedelta(microseconds=at.nanos // 1000)
    if zone is None:
        return moment
    if type(zone) is not str:
        raise no_overload()
    if fixed := _OFFSET.fullmatch(zone):
        away = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        if away >= timedelta(days=1):
            raise CelError(f"unknown time zone {zone}")
        return _moved(moment, timezone(-away if fixed[1] == "-" else away))
    try:
        return _moved(moment, ZoneInfo(zone or "UTC"))
    except (ValueError, KeyError, OSError):
        raise CelError(f"unknown time zone {zone}") from None


def _moved(moment: datetime, zone: Any) -> datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def part_of(function: str) -> Any:
    """The function that tells a part of a time, or of a duration."""

    def part(meter: Meter, value: Any, *zone: Any) -> int:
        if type(value) is Timestamp and len(zone) <= 1:
            return int(_OF_TIME[function](_in_zone(value, zone[0] if zone else None)))
        if type(value) is Duration and function in _OF_SPAN and not zone:
            size = abs(value.nanos) // _OF_SPAN[function]
            return -size if value.nanos < 0 else size
        raise no_overload(function, value, *zone)

    return part


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": inverted,
    "_==_": equal,
    "_!=_": is_unequal,
    "_<_": is_less,
    "_<=_": is_less_or_equal,
    "_>_": is_greater,
    "_>=_": is_greater_or_equal,
    "@in": is_in,
    "size": size,
    "dyn": dyn,
    "type": kind,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "bool": to_bool,
    "bytes": to_bytes,
    "string": to_string,
    "timestamp": to_timestamp,
    "duration": to_duration,
    **{name: part_of(name) for name in _OF_TIME},
}
KINDS = {
    **{name: TypeValue(name) for name in TYPES.values()},
    **{name: TypeValue(name) for name in ("type", "optional_type", Timestamp.cel_type, Duration.cel_type)},
    **{
        f"kubernetes.{name}": TypeValue(f"kubernetes.{name}")
        for name in ("Quantity", "URL", "Semver", "NamedFormat")
    },
    **{f"net.{name}": TypeValue(f"net.{name}") for name in ("IP", "CIDR")},
}
"""The types that may be named."""
