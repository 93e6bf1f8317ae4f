"""What Kubernetes asks of the literals in an expression that is otherwise right: one type for all items of a
list, and durations, times, patterns and formats that can be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from podling.apiserver.cel.inference import Inference
from podling.apiserver.cel.operators import to_duration, to_timestamp
from podling.apiserver.cel.patterns import pattern_fault
from podling.apiserver.cel.tree import parts_of, which
from podling.apiserver.cel.types import Type, without_wrappers
from podling.apiserver.cel.values import CelError, Meter, UInt

_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>\d*))?(?P<letter>.?))", re.DOTALL)
_NUMBERS = "only integers and bools can be formatted as binary"
_HEX = "only integers, byte buffers, and strings can be formatted as hex"
_TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")
_FORMATTED = {
    "d": ("decimal clause can only be used on integers", {"int", "uint"}),
    "o": ("octal clause can only be used on integers", {"int", "uint"}),
    "b": (_NUMBERS, {"int", "uint", "bool"}),
    "x": (_HEX, {"int", "uint", "bytes", "string"}),
    "X": (_HEX, {"int", "uint", "bytes", "string"}),
    "e": ("scientific clause can only be used on doubles", {"double"}),
    "f": ("fixed-point clause can only be used on doubles", {"double", "string"}),
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
        "durations, and timestamps",
        {"string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "null_type", *_TIMES},
    ),
}


def _is_no(convert: Callable[[Meter, Any], Any]) -> Callable[[Any], bool]:
    """Whether a constant cannot be converted."""

    def is_no(const: Any) -> bool:
        what = which(const)
        value = getattr(const, what)
        try:
            convert(Meter(0), None if what == "null" else UInt(value) if what == "uint" else value)
        except CelError:
            return True
        return False

    return is_no


LITERALS: Mapping[str, Callable[[Any], bool]] = {
    "duration": _is_no(to_duration),
    "timestamp": _is_no(to_timestamp),
    "matches": lambda const: const.HasField("string") and bool(pattern_fault(const.string)),
}
"""Functions whose last argument is looked at if it is constant."""


def literal_faults(found: Inference) -> Iterator[tuple[int, str]]:
    """Offset and message of each."""
    exempt = {
        one.id
        for part in found.tree.parts()
        if part.HasField("call") and part.call.function == "format"
        for one in parts_of(part)
    }
    for part in found.tree.parts():
        if part.HasField("list") and part.id not in exempt:
            yield from list_faults(found, part.list)
        elif part.HasField("structure") and not part.structure.message_name and part.id not in exempt:
            yield from map_faults(found, part.structure)
        elif part.HasField("call"):
            yield from call_faults(found, part)
        elif part.const.HasField("double") and math.isinf(part.const.double):
            yield found.tree.position(part.id), "invalid double literal"


def _misfit(found: Inference, expected: Type, part: Any, type_: Type) -> tuple[int, str]:
    return found.tree.start(part), f"expected type '{expected.shown}' but found '{type_.shown}'"


def _inner(type_: Type, *, optional: bool) -> Type:
    return type_.params[0] if optional and type_.is_optional else type_


def list_faults(found: Inference, part: Any) -> Iterator[tuple[int, str]]:
    optional = set(part.optional_indices)
    first: Type | None = None
    for at, item in enumerate(part.elements):
        type_ = _inner(found.of(item), optional=at in optional)
        first = first or type_
        if type_ is not first and without_wrappers(type_) != without_wrappers(first):
            yield _misfit(found, first, item, type_)
            return


def map_faults(found: Inference, part: Any) -> Iterator[tuple[int, str]]:
    first: tuple[Type, Type] | None = None
    for entry in part.entries:
        types = found.of(entry.map_key), _inner(found.of(entry.value), optional=entry.optional)
        first = first or types
        for node, type_, expected in zip((entry.map_key, entry.value), types, first, strict=True):
            if type_ is not expected and without_wrappers(type_) != without_wrappers(expected):
                yield _misfit(found, expected, node, type_)


def call_faults(found: Inference, part: Any) -> Iterator[tuple[int, str]]:
    call = part.call
    arguments = list(call.args)
    last = arguments[-1] if arguments else None
    if call.function in LITERALS and last is not None and which(last) == "const":
        if LITERALS[call.function](last.const):
            yield found.tree.position(last.id), f"invalid {call.function} argument"
    elif call.function == "format" and call.target.const.HasField("string") and arguments[0].HasField("list"):
        yield from format_faults(found, part)


def _named(found: Inference, part: Any) -> str:
    """The name of a type, without what it holds."""
    name = without_wrappers(found.of(part)).go.partition("(")[0]
    return "google.protobuf.Any" if name == "any" else name


def _unfit(found: Inference, part: Any, allowed: Collection[str]) -> Any:
    """What a clause for these types does not show: an argument, or what is written out in it; None for
    nothing."""
    waiting = [part]
    while waiting:
        at = waiting.pop()
        if _named(found, at) not in (*allowed, "dyn"):
            return at
        if at.HasField("list"):
            waiting.extend(reversed(at.list.elements))
        elif at.HasField("structure"):
            for entry in reversed(at.structure.entries):
                waiting.extend((entry.value, entry.map_key) if entry.HasField("map_key") else ())
    return None


def format_faults(found: Inference, part: Any) -> Iterator[tuple[int, str]]:
    """The first of a format and its arguments."""
    used, given = 0, list(part.call.args[0].list.elements)
    for clause in _CLAUSE.finditer(part.call.target.const.string):
        letter, precision = clause["letter"], clause["precision"]
        if clause["percent"]:
            continue
        where, why = part, ""
        if not letter and precision is None:
            why = "unexpected end of string"
        elif used >= len(given):
            why = f"index {used} out of range"
        elif precision == "":
            why = (
                "could not parse formatting clause: error while parsing precision: error while converting "
                'precision to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        elif letter not in _FORMATTED:
            why = f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
        else:
            words, allowed = _FORMATTED[letter]
            unfit = _unfit(found, given[used], allowed)
            if unfit is not None:
                where, why = unfit, f"error during formatting: {words}, was given {_named(found, unfit)}"
        if why:
            yield found.tree.start(where), why
            return
        used += 1
    if used < len(given):
        why = f"too many arguments supplied to string.format (expected {used}, got {len(given)})"
        yield found.tree.position(part.id), why
