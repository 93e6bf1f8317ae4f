"""The values that expressions work on, and the rules that hold for all of them: types, equality and order.

Values of JSON are themselves: `None`, `bool`, `int`, `float`, `str`, `list` and `dict` with keys of strings.
What JSON does not have is here. The keys of a map that are booleans are `Flag`s, since Python takes `True`
for 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, ClassVar

import msgspec

SMALLEST, LARGEST, LARGEST_UNSIGNED = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
MOST_ITEMS = 1 << 20
"""Items of one list or map, and characters of one string: what is longer costs too much."""
ROOM, COMPARED, NESTED = 100_000_000, 25, 5
"""Items that may be made without a charge; as how many one counts that is compared; and what a list or map
counts besides its items."""
OUT_OF_COST = "operation cancelled: actual cost limit exceeded"
_ALONE = frozenset(
    (
        *("kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "kubernetes.NamedFormat"),
        *("net.IP", "net.CIDR"),
    )
)
"""What is compared with values of its own type alone."""
GO_TYPES = {
    "null_type": "types.Null",
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
}
"""How Go calls the types of values, which some messages tell."""


class CelError(Exception):
    """What an expression evaluates to when it fails; the message is that of `cel-go`."""


class CostError(CelError):
    """An expression cost more than it may. No operator makes anything else of it."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_COST)


class Unlike(CelError):
    """Values of which it is not known whether they are equal."""


class Meter:
    """What an evaluation may still cost, in units of `cel-go`. `left` goes down to `floor`. `room`: for what
    costs nothing there, items that may still be made and `COMPARED` for each that is compared."""

    __slots__ = ("floor", "left", "room")

    def __init__(self, left: int, floor: int = 0, room: int = ROOM) -> None:
        self.left, self.floor, self.room = left, floor, room

    def charge(self, cost: int) -> None:
        """Raises CostError."""
        self.left -= cost
        if self.left < self.floor:
            raise CostError

    def hold(self, count: int) -> None:
        """So many items, or characters, are about to be made. Raises CostError."""
        if count > MOST_ITEMS:
            raise CostError
        self.fill(count)

    def fill(self, room: int) -> None:
        """Raises CostError."""
        self.room -= room
        if self.room < 0:
            raise CostError


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Flag(Enum):
    """A boolean as a key of a map."""

    YES = True
    NO = False


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value."""

    cel_type: ClassVar[str] = "type"
    name: str


class Timestamp(msgspec.Struct, frozen=True, order=True):
    """`nanos` since 1970; `offset`: seconds east of UTC, in which it is written."""

    cel_type: ClassVar[str] = "google.protobuf.Timestamp"
    nanos: int
    offset: int = 0


class Duration(msgspec.Struct, frozen=True, order=True):
    cel_type: ClassVar[str] = "google.protobuf.Duration"
    nanos: int


class Optional(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "optional_type"
    value: Any = None
    is_there: bool = True


class Made(msgspec.Struct, frozen=True):
    """An object that an expression makes: `Object{…}`, `JSONPatch{…}`."""

    name: str
    fields: dict[str, Any]

    @property
    def cel_type(self) -> str:
        return self.name


NONE = Optional(is_there=False)
TYPES = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
}
_PLAIN = frozenset((str, int, bool, float, type(None)))
NUMBERS = frozenset((int, UInt, float))


def type_of(value: Any) -> str:
    return TYPES.get(type(value)) or str(value.cel_type)


def no_overload(function: str = "", *values: Any) -> CelError:
    """`values`: those whose types the message tells; without them it tells the function alone, or nothing."""
    if not function:
        return CelError("no such overload")
    types = f"({', '.join(map(type_of, values))})" if values else ""
    return CelError(f"no such overload: {function}{types}")


def without_trait(function: str, value: Any) -> CelError:
    """For a function of whatever can do something. Values that have functions are asked whether it is one of
    theirs, and name none."""
    return no_overload(*([] if type(value) in (str, Timestamp, Duration) else [function]))


def integer(value: int) -> int:
    """Raises CelError for what 64 bits do not hold."""
    if not SMALLEST <= value <= LARGEST:
        raise CelError("integer overflow")
    return value


def unsigned(value: int) -> UInt:
    if not 0 <= value <= LARGEST_UNSIGNED:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def key_of(value: Any) -> Any:
    """As the key of a map. Raises CelError for what cannot be one."""
    type_ = type(value)
    if type_ is str or type_ is int or type_ is UInt:
        return value
    if type_ is bool:
        return Flag(value)
    if type_ is float:
        return value
    raise CelError(f"unsupported key type: {type_of(value)}")


def keys(value: dict[Any, Any]) -> Iterator[Any]:
    return (key.value if type(key) is Flag else key for key in value)


def found(value: dict[Any, Any], key: Any) -> tuple[bool, Any]:
    """Whether a map has a key, and what it has there."""
    type_ = type(key)
    if type_ is bool:
        key = Flag(key)
    elif type_ not in (str, int, UInt, float):
        return False, None
    if key in value:
        return True, value[key]
    return False, None


def equal(meter: Meter, one: Any, other: Any) -> bool:
    """Values of different types differ, but for numbers. Raises CelError for what is never compared."""
    types = type(one), type(other)
    if not getattr(one, "compares", True):
        raise no_overload()
    if types[0] is types[1]:
        if types[0] is list:
            return equal_lists(meter, one, other)
        if types[0] is dict:
            return equal_maps(meter, one, other)
        if types[0] is Optional:
            return one.is_there == other.is_there and (
                not one.is_there or equal(meter, one.value, other.value)
            )
        if types[0] is Made:
            return one.name == other.name and equal_maps(meter, one.fields, other.fields)
        return bool(one == other)
    if types[0] in NUMBERS and types[1] in NUMBERS:
        return bool(one == other)
    if getattr(one, "cel_type", "") in _ALONE and other is not None:
        raise Unlike("no such overload")
    return False


def is_among(meter: Meter, one: Any, many: Iterable[Any]) -> bool:
    return any(is_alike(meter, one, item, unlike=False) for item in many)


def is_alike(meter: Meter, one: Any, other: Any, *, unlike: bool) -> bool:
    """As `equal`; `unlike` where that knows no answer, which Kubernetes does not hear inside of values."""
    try:
        return equal(meter, one, other)
    except Unlike:
        return unlike


def equal_lists(meter: Meter, one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    meter.fill(COMPARED * (len(one) + NESTED))
    for mine, its in zip(one, other, strict=True):
        type_ = type(mine)
        if type_ is type(its) and type_ in _PLAIN:
            if mine != its:
                return False
        elif not is_alike(meter, mine, its, unlike=True):
            return False
    return True


def equal_maps(meter: Meter, one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    if len(one) != len(other):
        return False
    meter.fill(COMPARED * (2 * len(one) + NESTED))
    return all(key in other and is_alike(meter, value, other[key], unlike=True) for key, value in one.items())


_ORDERED = (str, bytes, bool, Timestamp, Duration)


def compare(one: Any, other: Any) -> int:
    """-1, 0 or 1. Raises CelError for what has no order."""
    types = type(one), type(other)
    if (types[0] in NUMBERS and types[1] in NUMBERS) or (types[0] is types[1] and types[0] in _ORDERED):
        if types[0] is float or types[1] is float:
            if one != one or other != other:
                raise CelError("NaN values cannot be ordered")
        elif types[0] is str:
            # Go compares bytes; by code points is the same, but for surrogates, which no text has.
            return int(one > other) - int(one < other)
        return int(one > other) - int(one < other)
    raise no_overload()
