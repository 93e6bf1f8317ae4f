"""What the call of a function costs when it is evaluated (`interpreter/runtimecost.go` of `cel-go`, and
`CallCost` of `apiserver/pkg/cel/library/cost.go` of Kubernetes). What it may cost at most is in `costs.py`.

What is in no table costs 1. A function of the standard that may be called in several ways costs 1, too, where
the types do not tell in which; those of Kubernetes cost the same whatever is known of types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podling.apiserver.cel.addresses import Address, Network
from podling.apiserver.cel.authorizer import AccessDecision, Asker, GroupCheck, PathCheck, ResourceCheck
from podling.apiserver.cel.objects import Link, Measure, NamedFormat, Semver
from podling.apiserver.cel.types import LIST, Signature
from podling.apiserver.cel.values import LARGEST_UNSIGNED, Meter, Optional

CHECK_COST = 350_000
"""Of asking an authorizer: an expression may do it twice."""
OF_TEXT, OF_PATTERN = 0.1, 0.25
"""For a character that is read, and for one of a pattern."""
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40
MADE_COST = LIST_COST + 1
"""Of a function that makes a list, besides what each item costs."""
REQUIREMENT_COST = LIST_COST + STRUCT_COST
"""Of each requirement in a selector, which has two characters or more."""
LONGEST_PATTERNS = {
    **dict.fromkeys(("dns1123Label", "dns1035Label", "dns1123LabelPrefix", "dns1035LabelPrefix"), 8),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 15),
    **dict.fromkeys(("uuid", "date", "datetime"), 18),
    "labelValue": 10,
    "byte": 21,
    "uri": 276,
}
"""What the pattern of a named format counts for."""
_ALIKE = frozenset(
    (
        *(Measure, Address, Network, NamedFormat, Link, Semver),
        *(Asker, PathCheck, GroupCheck, ResourceCheck, AccessDecision),
    )
)
"""Types whose values are compared for 1."""
_SIZED = frozenset((str, bytes, list, dict))
_TEXTS = frozenset(("string", "bytes"))

Charge = Callable[..., int]
"""From the meter and the arguments; in place of one that failed is its error."""


def size_of(value: Any) -> int:
    type_ = type(value)
    if type_ in _SIZED:
        return len(value)
    if type_ is Optional:
        return size_of(value.value) if value.is_there else 1
    if type_ is Address:
        return len(value.ip.packed)
    return math.ceil(value.bits / 8) if type_ is Network else 1


def _read(times: int = 1, position: int = 0) -> Charge:
    """An argument is read, that many times."""

    def cost(meter: Meter, *values: Any) -> int:
        return math.ceil(size_of(values[position]) * times * OF_TEXT)

    return cost


def _equal(meter: Meter, one: Any, other: Any) -> int:
    return 1 if type(one) in _ALIKE else _compared(meter, one, other)


def _compared(meter: Meter, one: Any, other: Any) -> int:
    return math.ceil(min(size_of(one), size_of(other)) * OF_TEXT)


def _added(meter: Meter, one: Any, other: Any) -> int:
    return math.ceil((size_of(one) + size_of(other)) * OF_TEXT)


def _has_part(meter: Meter, text: Any, part: Any) -> int:
    return math.ceil(size_of(text) * OF_TEXT) * math.ceil(size_of(part) * OF_TEXT)


def _matched(meter: Meter, text: Any, pattern: Any, *limit: Any) -> int:
    return math.ceil((1.0 + size_of(text)) * OF_TEXT) * math.ceil(size_of(pattern) * OF_PATTERN)


def _joined(meter: Meter, parts: Any, separator: Any = "") -> int:
    """By what is made; an error counts 1."""
    length = 1
    if type(parts) is list and type(separator) is str and all(type(one) is str for one in parts):
        length = sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)
    return math.ceil(length * 2 * OF_TEXT)


def _traversed(meter: Meter, value: Any, *what: Any) -> int:
    """A value is read with all that is in it. Raises CostError."""
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        type_ = type(one)
        if type_ is list or type_ is dict:
            meter.hold(len(one))
            waiting.extend(one)
            if type_ is dict:
                waiting.extend(one.values())
        elif type_ is str:
            total += int(len(one.encode(errors="surrogatepass")) * OF_TEXT)
        else:
            total += int(len(one) * OF_TEXT) if type_ is bytes else 1
    return total


def _sets(each: int) -> Charge:
    return lambda meter, one, other: 1 + size_of(one) * size_of(other) * each


def _made_of_pairs(meter: Meter, *values: Any) -> int:
    return MADE_COST + 2 * size_of(values[-1]) ** 2


def _sliced(meter: Meter, values: Any, start: Any, end: Any) -> int:
    is_right = type(values) is list and type(start) is type(end) is int and 0 <= start <= end <= len(values)
    return MADE_COST + (end - start if is_right else 1)


def _flattened(meter: Meter, values: Any, depth: Any = 1) -> int:
    """Of a negative depth as much as 64 bits make of it."""
    return (MADE_COST + size_of(values) * (depth if type(depth) is int else 1)) % (LARGEST_UNSIGNED + 1)


def _range(meter: Meter, count: Any) -> int:
    return MADE_COST + (max(count, 0) if type(count) is int else 1)


def _selected(meter: Meter, check: Any, selector: Any) -> int:
    length = size_of(selector)
    return LIST_COST + math.ceil(length * OF_TEXT) + math.ceil(length / 2) * REQUIREMENT_COST


def _within(meter: Meter, network: Any, other: Any) -> int:
    return math.ceil(2 * size_of(network) * OF_TEXT)


def _network_within(meter: Meter, network: Any, other: Any) -> int:
    return _within(meter, network, other) + math.ceil(size_of(network) * OF_TEXT) + 1


def _asked(meter: Meter, *values: Any) -> int:
    # Asked or not, no more of the time that the rest of the expression has is gone.
    meter.floor = max(meter.floor - CHECK_COST, 0)
    return CHECK_COST


def _validated(meter: Meter, form: Any, text: Any) -> int:
    if type(form) is not NamedFormat:
        return 1
    return math.ceil((1.0 + size_of(text)) * OF_TEXT) * LONGEST_PATTERNS[form.name]


CHARGES: Mapping[str, Charge] = {
    "check": _asked,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selected),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _read()),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _read()),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _read()),
    "ip": lambda meter, value: 1 if type(value) is Network else math.ceil(size_of(value) * OF_TEXT),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _read(2)),
    "join": _joined,
    **dict.fromkeys(("find", "findAll"), _matched),
    "containsIP": _within,
    "containsCIDR": _network_within,
    "validate": _validated,
    "_==_": _equal,
}
"""Of Kubernetes' functions."""
_OF_WAYS: Mapping[str, Charge] = {
    "_!=_": _compared,
    **dict.fromkeys(("startsWith", "endsWith", "format", "strings.quote"), _read()),
    "contains": _has_part,
    "matches": _matched,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    **dict.fromkeys(("sort", "@sortByAssociatedKeys", "distinct"), _made_of_pairs),
    "reverse": lambda meter, values: MADE_COST + size_of(values),
    "slice": _sliced,
    "flatten": _flattened,
    "lists.range": _range,
}
"""Where it is known in which way a function is called: of `cel-go`'s standard and its extensions."""
_OF_TEXTS: Mapping[str, Charge] = {
    "_+_": _added,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compared),
}
"""Those that cost so much for strings and bytes alone."""


def charge_of(name: str, ways: Sequence[Signature]) -> Charge | None:
    """Of a function that may be called in these ways; None for 1."""
    only = ways[0] if len(ways) == 1 else None
    if name in CHARGES:
        charge = CHARGES[name]
        if name in ("containsIP", "containsCIDR") and only is not None and only.takes[1].kind == "string":
            return _with_text(charge)
        return charge
    if only is None:
        return None
    if name == "matches" and not only.is_member:
        return None
    if name == "@in" and only.takes[1].kind == LIST:
        return lambda meter, value, many: size_of(many)
    if name in _OF_TEXTS and only.takes[0].kind in _TEXTS:
        return _OF_TEXTS[name]
    if (name, only.takes[0].kind if only.takes else "") in (("bytes", "string"), ("string", "bytes")):
        return _read()
    return _OF_WAYS.get(name)


def _with_text(charge: Charge) -> Charge:
    """The second argument is read first."""
    return lambda meter, one, other: charge(meter, one, other) + math.ceil(size_of(other) * OF_TEXT)
