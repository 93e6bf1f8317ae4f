"""The parts that expressions are made of, as functions of Python. A part is called with the evaluation and
returns its value.

An error is an exception; only `&&`, `||` and what a comprehension has gathered so far keep one as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podling.apiserver.cel.addresses import Address, Network
from podling.apiserver.cel.authorizer import AccessDecision, Asker, GroupCheck, PathCheck, ResourceCheck
from podling.apiserver.cel.objects import Link, Measure, NamedFormat, Semver
from podling.apiserver.cel.operators import to_string
from podling.apiserver.cel.values import (
    GO_TYPES,
    NONE,
    ROOM,
    CelError,
    CostError,
    Duration,
    Made,
    Meter,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    found,
    key_of,
    keys,
    no_overload,
    type_of,
)

_QUALIFIERS = frozenset((str, int, UInt, bool, float))
"""Types of keys."""
_GO_NAMES = {
    type(None): "types.Null",
    bytes: "types.Bytes",
    list: "*types.baseList",
    dict: "*types.baseMap",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    TypeValue: "*types.Type",
    Optional: "*types.Optional",
    Measure: "cel.Quantity",
    Link: "cel.URL",
    Address: "cel.IP",
    Network: "cel.CIDR",
    Semver: "cel.Semver",
    NamedFormat: "cel.Format",
    Asker: "library.authorizerVal",
    PathCheck: "library.pathCheckVal",
    GroupCheck: "library.groupCheckVal",
    ResourceCheck: "library.resourceCheckVal",
    AccessDecision: "library.decisionVal",
}
"""Other types, as Go names them."""


class Evaluation(Meter):
    """One evaluation: the variables that the expression may name, and the places of those of its own."""

    __slots__ = ("names", "slots")

    def __init__(
        self, names: Mapping[str, Any], slots: int, left: int, floor: int = 0, room: int = ROOM
    ) -> None:
        super().__init__(left, floor, room)
        self.names = names
        self.slots: list[Any] = [None] * slots


Part = Callable[[Evaluation], Any]


def kept(part: Part, at: Evaluation) -> Any:
    """The value of a part, or its error."""
    try:
        return part(at)
    except CostError:
        raise
    except CelError as error:
        return error


def constant(value: Any) -> Part:
    return lambda at: value


def failure(error: CelError) -> Part:
    def fail(at: Evaluation) -> Any:
        raise error

    return fail


def slot(index: int, cost: int) -> Part:
    def read(at: Evaluation) -> Any:
        at.left -= cost
        if at.left < at.floor:
            raise CostError
        value = at.slots[index]
        if isinstance(value, CelError):
            raise value
        return value

    return read


def bound(index: int, start: Part, cost: int) -> Part:
    """What is evaluated when it is first read."""

    def read(at: Evaluation) -> Any:
        at.charge(cost)
        if at.slots[index] is None:
            at.slots[index] = [kept(start, at)]
        (value,) = at.slots[index]
        if isinstance(value, CelError):
            raise value
        return value

    return read


def variable(name: str, cost: int) -> Part:
    def read(at: Evaluation) -> Any:
        at.left -= cost
        if at.left < at.floor:
            raise CostError
        try:
            return at.names[name]
        except KeyError:
            raise CelError(f"no such attribute(s): {name}") from None

    return read


def selection(operand: Part, field: str, own: int) -> Part:
    """`own`: what the path costs besides its steps."""

    def select(at: Evaluation) -> Any:
        value = _followed(operand, at, own)
        at.left -= 1 + own
        if at.left < at.floor:
            raise CostError
        if type(value) is dict:
            if field in value:
                return value[field]
            raise CelError(f"no such key: {field}")
        if type(value) is Optional:
            return _reached(at, value, field)
        if hasattr(value, "select"):
            return value.select(at, field)
        return _at_key(value, field)

    return select


def _followed(part: Part, at: Evaluation, own: int) -> Any:
    """What a path goes on from, or its key. It costs what the whole of the path costs if this fails, too."""
    try:
        return part(at)
    except CostError:
        raise
    except CelError:
        at.charge(own)
        raise


def presence(operand: Part, field: str) -> Part:
    def test(at: Evaluation) -> bool:
        value = operand(at)
        if type(value) is Optional:
            if not value.is_there:
                return False
            value = value.value
        at.charge(1)
        if type(value) is Made:
            value = value.fields
        if hasattr(value, "has"):
            return bool(value.has(field))
        if type(value) is list:
            _index(field)
        return type(value) is dict and field in value

    return test


def unwrapped(value: Any) -> Optional:
    if type(value) is not Optional:
        raise CelError(f"cannot initialize optional entry from non-optional value {value}")
    return value


def _at_key(value: Any, key: Any) -> Any:
    """Raises CelError for what is not there."""
    if type(value) is Made:
        value = value.fields
    if type(value) is dict:
        is_there, item = found(value, key)
        if is_there:
            return item
        raise CelError(f"no such key: {_shown(key)}")
    if type(value) is list:
        index = _index(key)
        if 0 <= index < len(value):
            return value[index]
        raise CelError(f"index out of bounds: {index}")
    raise CelError(f"no such key: {_shown(key)}")


def _index(key: Any) -> int:
    if type(key) in (int, UInt):
        return int(key)
    if type(key) is float:
        if key.is_integer():
            return int(key)
        raise CelError(f"unsupported index value {key} in list")
    raise CelError(f"unsupported index type '{type_of(key)}' in list")


def qualifier_type(key: Any) -> str:
    """The type of a key in Go if it can be none, else nothing."""
    return "" if type(key) in _QUALIFIERS else _GO_NAMES.get(type(key), type_of(key))


def _shown(key: Any) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    return str(to_string(Meter(0), key)) if type(key) in (float, bytes) else str(key)


def _if_there(value: Any, key: Any) -> Optional:
    """What an optional value, or any other, has at a key."""
    if type(value) is Optional:
        if not value.is_there:
            return NONE
        value = value.value
    if type(value) is Made:
        value = value.fields
    if type(value) is dict:
        is_there, item = found(value, key)
        return Optional(item) if is_there else NONE
    if type(value) is list:
        index = _index(key)
        return Optional(value[index]) if 0 <= index < len(value) else NONE
    if hasattr(value, "has"):
        return Optional(value.select(None, key)) if value.has(key) else NONE
    return NONE


def indexed(operand: Part, key: Part, own: int) -> Part:
    def index(at: Evaluation) -> Any:
        value = _followed(operand, at, own)
        if type(value) is Optional:
            return _stepped(at, value, key, own)
        wanted = _followed(key, at, 1 + own)
        at.charge(1 + own)
        return _at_key(value, _qualifier(wanted))

    return index


def indexed_if_there(operand: Part, key: Part, own: int) -> Part:
    def index(at: Evaluation) -> Optional:
        return _stepped(at, _followed(operand, at, own), key, own)

    return index


def _stepped(at: Evaluation, value: Any, key: Part, own: int) -> Optional:
    """A step that leads nowhere costs nothing, and from nothing none is taken: its key is not evaluated."""
    if type(value) is Optional and not value.is_there:
        at.charge(own)
        return NONE
    wanted = _followed(key, at, own)
    at.charge(1 + own)
    return _reached(at, value, wanted)


def _reached(at: Evaluation, value: Any, key: Any) -> Optional:
    found = NONE
    try:
        found = _if_there(value, _qualifier(key))
    finally:
        at.left += not found.is_there
    return found


def _qualifier(key: Any) -> Any:
    """Raises CelError for what can be no key."""
    if type(key) in _QUALIFIERS:
        return key
    raise CelError(f"invalid qualifier type: {qualifier_type(key)}")


def called(body: Callable[..., Any], parts: list[Part], charge: Callable[..., int] | None) -> Part:
    """A function of the values of parts. `charge`: what it costs, from the same; None for 1. It costs so
    much, too, if it is not called because a part failed, unless a later of three parts or more is then not
    evaluated."""
    if len(parts) == 1:
        (only,) = parts

        def unary(at: Evaluation) -> Any:
            try:
                value = only(at)
            except CostError:
                raise
            except CelError as error:
                at.charge(1 if charge is None else charge(at, error))
                raise
            at.left -= 1 if charge is None else charge(at, value)
            if at.left < at.floor:
                raise CostError
            return body(at, value)

        return unary
    if len(parts) == 2:
        first, second = parts

        def binary(at: Evaluation) -> Any:
            failed = None
            try:
                one = first(at)
            except CostError:
                raise
            except CelError as error:
                one = failed = error
            try:
                other = second(at)
            except CostError:
                raise
            except CelError as error:
                other, failed = error, failed or error
            at.left -= 1 if charge is None else charge(at, one, other)
            if at.left < at.floor:
                raise CostError
            if failed is not None:
                raise failed
            return body(at, one, other)

        return binary

    def call(at: Evaluation) -> Any:
        values = [*(part(at) for part in parts[:-1]), *(kept(part, at) for part in parts[-1:])]
        at.charge(1 if charge is None else charge(at, *values))
        if values and isinstance(values[-1], CelError):
            raise values[-1]
        return body(at, *values)

    return call


def member_of(part: Part, body: Callable[..., Any], values: list[Any]) -> Part:
    """Whether a value is one of a list of constants, which costs nothing."""
    return lambda at: body(at, part(at), values)


def logic(decisive: bool) -> Callable[[Part, Part], Part]:
    """`&&`, which false decides, or `||`, which true does: whatever the other operand is, also an error."""

    def joined(left: Part, right: Part) -> Part:
        def join(at: Evaluation) -> Any:
            one = kept(left, at)
            if one is decisive:
                return decisive
            other = kept(right, at)
            if other is decisive:
                return decisive
            for value in (one, other):
                if value is not (not decisive):
                    raise value if isinstance(value, CelError) else no_overload()
            return not decisive

        return join

    return joined


def ternary(condition: Part, yes: Part, no: Part) -> Part:
    def choose(at: Evaluation) -> Any:
        decided = condition(at)
        if decided is True:
            return yes(at)
        if decided is False:
            return no(at)
        raise no_overload()

    return choose


def not_strictly_false(part: Part) -> Part:
    def test(at: Evaluation) -> bool:
        at.charge(1)
        return kept(part, at) is not False

    return test


def alternative(left: Part, right: Part) -> Part:
    def either(at: Evaluation) -> Any:
        one = left(at)
        return right(at) if type(one) is Optional and not one.is_there else one

    return either


def or_value(left: Part, right: Part) -> Part:
    def either(at: Evaluation) -> Any:
        one = left(at)
        if type(one) is not Optional:
            return one
        return one.value if one.is_there else right(at)

    return either


def appended(gathered: Part, added: Part) -> Part:
    def append(at: Evaluation) -> Any:
        values, new = kept(gathered, at), kept(added, at)
        at.charge(1)
        for one in (values, new):
            if isinstance(one, CelError):
                raise one
        values.extend(new)
        return values

    return append


def inserted(gathered: Part, *added: Part) -> Part:
    def insert(at: Evaluation) -> Any:
        values = gathered(at)
        new = [*(part(at) for part in added[:-1]), kept(added[-1], at)]
        at.charge(1)
        if isinstance(new[-1], CelError):
            raise new[-1]
        pairs = [(key_of(new[0]), new[1])] if len(new) == 2 else list(new[0].items())
        for key, value in pairs:
            if key in values:
                raise CelError(f"insert failed: key {_shown(getattr(key, 'value', key))} already exists")
            values[key] = value
        return values

    return insert


def items_of(many: Any) -> Any:
    if type(many) is list:
        return many
    if type(many) is dict:
        return keys(many)
    raise CelError(f"got '{_go_type(many)}', expected iterable type")


def pairs_of(many: Any) -> Any:
    if type(many) is list:
        return enumerate(many)
    if type(many) is dict:
        return zip(keys(many), many.values(), strict=True)
    raise CelError(f"unsupported comprehension range type: {_go_type(many)}")


def _go_type(value: Any) -> str:
    return GO_TYPES.get(type_of(value), type_of(value))
