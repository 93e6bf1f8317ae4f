"""Functions of lists, sets and optional values: those of CEL's extensions, and Kubernetes' own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from podling.apiserver.cel.operators import add
from podling.apiserver.cel.strings import index_of, last_index_of
from podling.apiserver.cel.values import (
    COMPARED,
    NONE,
    CelError,
    Duration,
    Meter,
    Optional,
    Timestamp,
    compare,
    is_alike,
    is_among,
    no_overload,
    type_of,
    without_trait,
)

_OPEN = {"list": "list(dyn)", "map": "map(dyn, dyn)"}
_UNORDERED = "list elements must be comparable"
_ORDERED = frozenset(
    (*("int", "uint", "double", "bool", "string", "bytes"), Timestamp.cel_type, Duration.cel_type)
)


def _list(function: str, *values: Any) -> None:
    if type(values[0]) is not list:
        raise no_overload(function, *values)


def total(meter: Meter, values: Any) -> Any:
    _list("sum", values)
    if not values:
        return 0
    made = values[0]
    if type_of(made) not in ("int", "uint", "double", "google.protobuf.Duration"):
        raise no_overload("sum", values)
    for one in values[1:]:
        made = add(meter, made, one)
    return made


def _extreme(function: str, sign: int) -> Callable[[Meter, Any], Any]:
    def extreme(meter: Meter, values: Any) -> Any:
        _list(function, values)
        if not values:
            raise CelError(f"{function} called on empty list")
        if type_of(values[0]) not in _ORDERED:
            raise no_overload(function, values)
        best = values[0]
        for one in values[1:]:
            if _order(one, best) == sign:
                best = one
        return best

    return extreme


def _order(one: Any, other: Any) -> int | None:
    """As `compare`; None for what have no order with each other. Raises CelError if the first has none."""
    if type_of(one) not in _ORDERED:
        raise no_overload()
    try:
        return compare(one, other)
    except CelError:
        return None


def is_sorted(meter: Meter, values: Any) -> bool:
    _list("isSorted", values)
    if values and type_of(values[0]) not in _ORDERED:
        raise no_overload("isSorted", values)
    return all(_order(other, one) != -1 for one, other in pairwise(values))


def index(meter: Meter, values: Any, *what: Any) -> int:
    if type(values) is str and what and type(what[0]) is str and all(type(at) is int for at in what[1:]):
        return index_of(meter, values, *what)
    if type(values) is not list or len(what) != 1:
        raise no_overload("indexOf", values, *what)
    return next((at for at, one in enumerate(values) if is_alike(meter, one, what[0], unlike=False)), -1)


def last_index(meter: Meter, values: Any, *what: Any) -> int:
    if type(values) is str and what and type(what[0]) is str and all(type(at) is int for at in what[1:]):
        return last_index_of(meter, values, *what)
    if type(values) is not list or len(what) != 1:
        raise no_overload("lastIndexOf", values, *what)
    backwards = range(len(values) - 1, -1, -1)
    return next((at for at in backwards if is_alike(meter, values[at], what[0], unlike=False)), -1)


def includes(meter: Meter, values: Any, others: Any) -> bool:
    if type(values) is not list or type(others) is not list:
        raise no_overload("sets.contains", values, others)
    return all(is_among(meter, one, values) for one in others)


def equivalent(meter: Meter, values: Any, others: Any) -> bool:
    if type(values) is not list or type(others) is not list:
        raise no_overload("sets.equivalent", values, others)
    return includes(meter, values, others) and includes(meter, others, values)


def intersects(meter: Meter, values: Any, others: Any) -> bool:
    if type(values) is not list or type(others) is not list:
        raise no_overload("sets.intersects", values, others)
    return any(is_among(meter, one, others) for one in values)


def flatten(meter: Meter, values: Any, *depth: Any) -> list[Any]:
    (levels,) = depth or (1,)
    if type(values) is not list or type(levels) is not int:
        of, *given = (_OPEN.get(name, name) for name in map(type_of, (values, *depth)))
        raise CelError(f"no such overload: {of}.flatten({', '.join(given)})")
    if levels < 0:
        raise CelError("level must be non-negative")
    made: list[Any] = []
    _flatten(meter, values, levels, made)
    return made


def _flatten(meter: Meter, values: list[Any], depth: int, made: list[Any]) -> None:
    meter.hold(len(values))
    for one in values:
        if type(one) is list and depth > 0:
            _flatten(meter, one, depth - 1, made)
        else:
            made.append(one)


def slice_of(meter: Meter, values: Any, start: Any, end: Any) -> list[Any]:
    if type(values) is not list or type(start) is not int or type(end) is not int:
        raise no_overload("slice", values, start, end)
    told = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise CelError(f"{told}, negative indexes not supported")
    if start > end:
        raise CelError(f"{told}, start index must be less than or equal to end index")
    if end > len(values):
        raise CelError(f"{told}, list is length {len(values)}")
    return list(values[start:end])


def span(meter: Meter, count: Any) -> list[int]:
    if type(count) is not int:
        raise no_overload("lists.range", count)
    meter.hold(count)
    return list(range(count))


def distinct(meter: Meter, values: Any) -> list[Any]:
    _list("distinct", values)
    made: list[Any] = []
    for one in values:
        if not is_among(meter, one, made):
            made.append(one)
    return made


def reverse(meter: Meter, values: Any) -> list[Any]:
    _list("reverse", values)
    return list(reversed(values))


def sort(meter: Meter, values: Any) -> list[Any]:
    if type(values) is not list:
        raise without_trait("sort", values)
    return sort_by(meter, values, values)


def sort_by(meter: Meter, values: Any, ranks: Any) -> list[Any]:
    if type(values) is not list or type(ranks) is not list:
        raise without_trait("@sortByAssociatedKeys", values)
    if len(values) != len(ranks):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(values)} and {len(ranks)} elements respectively."
        )
    meter.fill(COMPARED * len(values))
    if not values:
        return []
    first = type_of(ranks[0])
    if first not in _ORDERED:
        raise CelError(_UNORDERED)
    for one in ranks:
        if type_of(one) != first:
            raise CelError("list elements must have the same type")
    rank = cmp_to_key(compare)
    order = sorted(range(len(values)), key=lambda at: rank(ranks[at]))
    return [values[at] for at in order]


def first(meter: Meter, values: Any) -> Optional:
    _list("first", values)
    return Optional(values[0]) if values else NONE


def last(meter: Meter, values: Any) -> Optional:
    _list("last", values)
    return Optional(values[-1]) if values else NONE


def optional_of(meter: Meter, value: Any) -> Optional:
    return Optional(value)


def optional_none(meter: Meter) -> Optional:
    return NONE


def of_non_zero(meter: Meter, value: Any) -> Optional:
    if value is None or (type(value) in (bool, int, float, str, bytes, list, dict) and not value):
        return NONE
    if (isinstance(value, int) and not value) or (type(value) is Duration and not value.nanos):
        return NONE
    return Optional(value)


def has_value(meter: Meter, value: Any) -> bool:
    if type(value) is not Optional:
        raise no_overload("hasValue", value)
    return value.is_there


def value_of(meter: Meter, value: Any) -> Any:
    if type(value) is not Optional:
        raise no_overload("value", value)
    if not value.is_there:
        raise CelError("optional.none() dereference")
    return value.value


def _unwrapped(function: str) -> Callable[[Meter, Any], list[Any]]:
    def unwrapped(meter: Meter, values: Any) -> list[Any]:
        _list(function, values)
        if any(type(one) is not Optional for one in values):
            raise no_overload(function, values)
        return [one.value for one in values if one.is_there]

    return unwrapped


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sum": total,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "isSorted": is_sorted,
    "indexOf": index,
    "lastIndexOf": last_index,
    "sets.contains": includes,
    "sets.equivalent": equivalent,
    "sets.intersects": intersects,
    "flatten": flatten,
    "slice": slice_of,
    "lists.range": span,
    "distinct": distinct,
    "reverse": reverse,
    "sort": sort,
    "@sortByAssociatedKeys": sort_by,
    "first": first,
    "last": last,
    "optional.of": optional_of,
    "optional.none": optional_none,
    "optional.ofNonZeroValue": of_non_zero,
    "hasValue": has_value,
    "value": value_of,
    **{name: _unwrapped(name) for name in ("optional.unwrap", "unwrapOpt")},
}
