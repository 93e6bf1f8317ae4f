"""Functions of strings: those of CEL, its extension `strings`, and Kubernetes' regular expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from podling.apiserver.cel.operators import double_text, duration_text, timestamp_text
from podling.apiserver.cel.patterns import compiled, pattern_fault
from podling.apiserver.cel.values import (
    CelError,
    Duration,
    Flag,
    Meter,
    Timestamp,
    TypeValue,
    UInt,
    no_overload,
    type_of,
    without_trait,
)
from podling.model.codec.quoting import quoted
from podling.model.remembered import remembered

SPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What Go calls white space."""
_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>\d*))?(?P<letter>.?))", re.DOTALL)
_UPPER = str.maketrans("".join(map(chr, range(97, 123))), "".join(map(chr, range(65, 91))))
_LOWER = str.maketrans("".join(map(chr, range(65, 91))), "".join(map(chr, range(97, 123))))
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SHOWN = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
MOST_PRECISION = 1000


def _strings(function: str, *values: Any) -> None:
    """Raises CelError if one of them is not a string."""
    for value in values:
        if type(value) is not str:
            raise no_overload(function, *values)


def starts_with(meter: Meter, text: Any, start: Any) -> bool:
    if type(text) is not str or type(start) is not str:
        raise no_overload()
    return text.startswith(start)


def ends_with(meter: Meter, text: Any, end: Any) -> bool:
    if type(text) is not str or type(end) is not str:
        raise no_overload()
    return text.endswith(end)


def contains(meter: Meter, text: Any, part: Any) -> bool:
    if type(text) is not str or type(part) is not str:
        raise no_overload()
    return part in text


@remembered(64)
def _pattern(pattern: str) -> Any:
    return compiled(pattern)


def pattern_of(meter: Meter, text: Any, pattern: Any) -> Any:
    """Raises CelError, and ValueError for a pattern with a fault."""
    if type(text) is not str or type(pattern) is not str:
        raise no_overload()
    meter.hold(len(text) * len(pattern) // 64)
    return _pattern(pattern)


def matches(meter: Meter, text: Any, pattern: Any) -> bool:
    if type(text) is not str and type(pattern) is not str:
        raise without_trait("matches", text)
    try:
        return pattern_of(meter, text, pattern).search(text) is not None
    except ValueError:
        raise CelError(pattern_fault(pattern)) from None


def _found(meter: Meter, text: Any, pattern: Any) -> Iterator[str]:
    try:
        return (one[0] for one in pattern_of(meter, text, pattern).finditer(text))
    except ValueError:
        raise CelError(f"Illegal regex: {pattern_fault(pattern)}") from None


def find(meter: Meter, text: Any, pattern: Any) -> str:
    if type(pattern) is not str:
        raise no_overload("find", text, pattern)
    return next(_found(meter, text, pattern), "")


def find_all(meter: Meter, text: Any, pattern: Any, *limit: Any) -> list[str]:
    most = limit[0] if limit else -1
    if type(text) is not str or type(pattern) is not str or type(most) is not int:
        raise no_overload(
            *([] if limit or (type(text) is not str and type(pattern) is str) else ["findAll", text, pattern])
        )
    made: list[str] = []
    for one in _found(meter, text, pattern):
        if len(made) == most:
            break
        made.append(one)
    return made


def char_at(meter: Meter, text: Any, at: Any) -> str:
    if type(text) is not str or type(at) is not int:
        raise no_overload("charAt", text, at)
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def index_of(meter: Meter, text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise CelError(f"index out of range: {start}")
    if not part:
        return start
    return text.find(part, start) if start < len(text) else -1


def last_index_of(meter: Meter, text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise CelError(f"index out of range: {start}")
    if not part:
        return start
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def lower(meter: Meter, text: Any) -> str:
    _strings("lowerAscii", text)
    return str(text.translate(_LOWER))


def upper(meter: Meter, text: Any) -> str:
    _strings("upperAscii", text)
    return str(text.translate(_UPPER))


def trim(meter: Meter, text: Any) -> str:
    _strings("trim", text)
    return str(text.strip(SPACE))


def replace(meter: Meter, text: Any, old: Any, new: Any, most: Any = -1) -> str:
    if type(most) is not int:
        raise no_overload("replace", text, old, new, most)
    for one in (text, old, new):
        if type(one) is not str:
            raise no_overload("replace", text, old, new, *([most] if most != -1 else []))
    count = len(text) + 1 if not old else text.count(old)
    if most >= 0:
        count = min(count, most)
    meter.hold(len(text) + count * max(len(new) - len(old), 0))
    return str(text.replace(old, new, most))


def split(meter: Meter, text: Any, separator: Any, most: Any = -1) -> list[str]:
    if type(text) is not str or type(separator) is not str or type(most) is not int:
        raise no_overload("split", text, separator, *([] if most == -1 else [most]))
    if most == 0:
        return []
    if not separator:
        if most < 0 or most >= len(text):
            return list(text)
        return [*text[: most - 1], text[most - 1 :]]
    return text.split(separator, most - 1 if most > 0 else -1)


def substring(meter: Meter, text: Any, start: Any, end: Any = None) -> str:
    if type(text) is not str or type(start) is not int or (end is not None and type(end) is not int):
        raise no_overload("substring", text, start, *([] if end is None else [end]))
    if end is None:
        if not 0 <= start <= len(text):
            raise CelError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for at in (start, end):
        if not 0 <= at <= len(text):
            raise CelError(f"index out of range: {at}")
    return text[start:end]


def join(meter: Meter, parts: Any, separator: Any = "") -> str:
    if type(parts) is not list or type(separator) is not str:
        raise no_overload("join", parts, *([separator] if separator != "" else []))
    if any(type(part) is not str for part in parts):
        raise no_overload("join", parts, *([separator] if separator else []))
    length = sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)
    meter.hold(length)
    return separator.join(parts)


def quote(meter: Meter, text: Any) -> str:
    _strings("strings.quote", text)
    marks = {letter: f"\\{name}" for letter, name in zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True)}
    return f'"{"".join(marks.get(one, one) for one in text)}"'


class _FormatError(Exception):
    """What is wrong with a format; the message is Go's."""


def format(meter: Meter, text: Any, values: Any) -> str:
    if type(text) is not str or type(values) is not list:
        raise no_overload("format", text, values)
    try:
        said = "".join(_formatted(meter, text, values))
    except _FormatError as error:
        raise CelError(str(error)) from None
    return said


def _formatted(meter: Meter, text: str, values: list[Any]) -> Iterator[str]:
    used = end = 0
    for found in _CLAUSE.finditer(text):
        yield text[end : found.start()]
        end = found.end()
        if found["percent"]:
            yield "%"
            continue
        letter, precision = found["letter"], found["precision"]
        if not letter and precision is None:
            raise _FormatError("unexpected end of string")
        if used >= len(values):
            raise _FormatError(f"index {used} out of range")
        if precision == "":
            raise _FormatError(
                "could not parse formatting clause: error while parsing precision: error while converting "
                'precision to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        if letter not in _CLAUSES:
            raise _FormatError(
                f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
            )
        digits = 6 if precision is None else int(precision[:6])
        if digits > MOST_PRECISION:
            raise _FormatError(f"error during formatting: a precision of more than {MOST_PRECISION}")
        told = _CLAUSES[letter](meter, values[used], digits)
        meter.hold(len(told))
        used += 1
        yield told
    yield text[end:]


def _refused(words: str, value: Any) -> _FormatError:
    return _FormatError(f"error during formatting: {words}, was given {type_of(value)}")


def _decimal(meter: Meter, value: Any, digits: int) -> str:
    if type(value) not in (int, UInt):
        raise _refused("decimal clause can only be used on integers", value)
    return str(int(value))


def _octal(meter: Meter, value: Any, digits: int) -> str:
    if type(value) not in (int, UInt):
        raise _refused("octal clause can only be used on integers", value)
    return f"{int(value):o}"


def _binary(meter: Meter, value: Any, digits: int) -> str:
    if type(value) not in (int, UInt, bool):
        raise _refused("only integers and bools can be formatted as binary", value)
    return f"{int(value):b}"


def _hex(meter: Meter, value: Any, digits: int) -> str:
    if type(value) in (int, UInt):
        return f"{int(value):x}"
    if type(value) is str:
        return value.encode(errors="surrogatepass").hex()
    if type(value) is bytes:
        return value.hex()
    raise _refused("only integers, byte buffers, and strings can be formatted as hex", value)


def _upper_hex(meter: Meter, value: Any, digits: int) -> str:
    return _hex(meter, value, digits).upper()


def _special(value: Any, words: str) -> str:
    """Of numbers that have no digits, which may be given as strings, too."""
    if type(value) is str and value in ("NaN", "Infinity", "-Infinity"):
        return {"Infinity": "∞", "-Infinity": "-∞"}.get(value, value)
    if type(value) is not float:
        raise _refused(words, value)
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return ""


def _fixed(meter: Meter, value: Any, digits: int) -> str:
    told = _special(value, "fixed-point clause can only be used on doubles")
    return told or f"{value or 0.0:,.{digits}f}"


def _scientific(meter: Meter, value: Any, digits: int) -> str:
    if told := _special(value, "scientific clause can only be used on doubles"):
        return told.rjust(6)
    # Kubernetes' library takes no heed of the precision here.
    mantissa, _, power = f"{value:.6e}".partition("e")
    return f"{mantissa}\u00d710{power.replace('+', '').translate(_SUPERSCRIPTS)}"


def _shown(meter: Meter, value: Any, digits: int) -> str:
    type_ = type(value)
    if type_ is str:
        return str(value)
    if type_ is bytes:
        return str(value, "utf-8", "replace")
    if type_ is float:
        return double_text(value)
    if type_ is Timestamp:
        return timestamp_text(value)
    if type_ is Duration:
        return duration_text(value)
    return _nested(meter, value)


def _nested(meter: Meter, value: Any) -> str:
    """Of what stands in a list or a map."""
    meter.hold(100)
    type_ = type(value)
    if type_ is str:
        return quoted(value)
    if type_ is bool:
        return "true" if value else "false"
    if type_ is int or type_ is UInt:
        return str(int(value))
    if value is None:
        return "null"
    if type_ is float:
        return double_text(value) if value != value or math.isinf(value) else f"{value:.6f}"
    if type_ is list:
        return f"[{', '.join(_held(meter, (_nested(meter, one) for one in value)))}]"
    if type_ is dict:
        pairs = sorted((_nested(meter, _key(key)), one) for key, one in value.items())
        return f"{{{', '.join(_held(meter, (f'{key}:{_nested(meter, one)}' for key, one in pairs)))}}}"
    if type_ is bytes:
        return f"b{quoted(str(value, 'utf-8', 'replace'))}"
    if type_ is Timestamp:
        return f"timestamp({quoted(timestamp_text(value))})"
    if type_ is Duration:
        return f"duration({quoted(duration_text(value))})"
    if type_ is TypeValue:
        return str(value.name)
    raise _refused(f"string clause can only be used on {_SHOWN}", value)


def _key(key: Any) -> Any:
    if type(key) is float:
        raise _refused("map keys can only be strings, bools, ints and uints", key)
    return key.value if type(key) is Flag else key


def _held(meter: Meter, parts: Iterator[str]) -> Iterator[str]:
    """What is shared is told as often as it stands there, so how long it gets is watched."""
    length = 0
    for part in parts:
        length += len(part)
        meter.hold(length)
        yield part


_CLAUSES = {
    "d": _decimal,
    "o": _octal,
    "b": _binary,
    "x": _hex,
    "X": _upper_hex,
    "f": _fixed,
    "e": _scientific,
    "s": _shown,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "startsWith": starts_with,
    "endsWith": ends_with,
    "contains": contains,
    "matches": matches,
    "find": find,
    "findAll": find_all,
    "charAt": char_at,
    "lowerAscii": lower,
    "upperAscii": upper,
    "trim": trim,
    "replace": replace,
    "split": split,
    "substring": substring,
    "join": join,
    "strings.quote": quote,
    "format": format,
}
