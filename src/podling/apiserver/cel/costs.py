"""What an expression may cost at most, before it is evaluated: the estimate of `cel-go` (`checker/cost.go`)
with what Kubernetes asks for its functions (`apiserver/pkg/cel/library/cost.go`).

A part costs what its function costs for the greatest values that its arguments may have. How great these are
is known of literals, of what functions make of them, and of fields by their paths, which `Sizes` answers.
Numbers end at `MOST`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from podling.apiserver.cel.charges import (
    CHECK_COST,
    LIST_COST,
    MADE_COST,
    MAP_COST,
    OF_PATTERN,
    OF_TEXT,
    STRUCT_COST,
)
from podling.apiserver.cel.inference import OPTIONAL_FIELD, Inference
from podling.apiserver.cel.tree import Tree, which
from podling.apiserver.cel.types import (
    DURATION,
    LIST,
    MAP,
    PARAM,
    STRUCT,
    TIMESTAMP,
    Signature,
    Type,
    without_wrapper,
)

MOST = (1 << 64) - 1
LONGEST_FORMAT = 128
"""Characters of the pattern by which a named format counts."""
IP_COST, CIDR_COST = 4, 7
"""Of comparing addresses, and ranges of them."""
ITEMS, VALUES, KEYS, INDICES = "@items", "@values", "@keys", "@indices"
_SCALARS = frozenset(("bool", "double", "int", "uint", TIMESTAMP, DURATION))
_ONE_STEP = frozenset(
    f"kubernetes.{name}" if "." not in name else name
    for name in ("Quantity", "Semver", "NamedFormat", "net.IP", "net.CIDR")
)
"""Structures that are compared in one step."""
Path = tuple[str, ...]


class Size(NamedTuple):
    """Least and most characters, items or entries."""

    least: int
    most: int


UNKNOWN, ONE = Size(0, MOST), Size(1, 1)


class Sizes(Protocol):
    def most_at(self, path: Path) -> int | None:
        """What a field may have of characters, items or entries; None if that is not known."""


def capped(number: int) -> int:
    return min(number, MOST)


def share_of(number: int, factor: float) -> int:
    """A part of a number, rounded up."""
    return MOST if number >= MOST and factor >= 1 else capped(math.ceil(number * factor))


class _Part(NamedTuple):
    """What is known of a part: its path from a variable, empty for none, its size, and that of its items."""

    path: Path = ()
    size: Size | None = None
    item: Size | None = None


class Estimate:
    """The estimate of one expression."""

    def __init__(self, tree: Tree, inference: Inference, sizes: Sizes) -> None:
        self._inference, self._sizes = inference, sizes
        self._parts: dict[int, _Part] = {}
        self._scope: dict[str, _Part] = {}
        self.cost = self._cost(tree.root)

    def _cost(self, node: Any) -> int:
        what = which(node)
        cost, part = getattr(self, f"_{what}")(node, getattr(node, what))
        self._parts[node.id] = part
        return capped(cost)

    def part(self, node: Any) -> _Part:
        return self._parts.get(node.id, _Part())

    def size(self, node: Any) -> Size:
        """Of the value of a part."""
        part = self.part(node)
        if part.size is not None:
            return part.size
        if part.path and (most := self._sizes.most_at(part.path)) is not None:
            return Size(0, most)
        type_ = self._inference.of(node)
        if type_.is_optional and type_.params:
            type_ = type_.params[0]
        return ONE if without_wrapper(type_).kind in _SCALARS else UNKNOWN

    def size_of_items(self, node: Any) -> Size:
        """Of the items of a list, by the path of the list."""
        path = self.part(node).path
        most = self._sizes.most_at((*path, ITEMS)) if path else None
        return UNKNOWN if most is None else Size(0, most)

    def type_of(self, node: Any) -> Type:
        return self._inference.of(node)

    def _const(self, node: Any, part: Any) -> tuple[int, _Part]:
        what = which(part)
        if what in ("string", "bytes"):
            length = len(getattr(part, what))
            return 0, _Part(size=Size(length, length))
        return 0, _Part(size=ONE)

    def _ident(self, node: Any, part: Any) -> tuple[int, _Part]:
        name = part.name.removeprefix(".")
        return 1, self._scope.get(name) or _Part((name,))

    def _select(self, node: Any, part: Any) -> tuple[int, _Part]:
        if name := self._inference.names.get(node.id):
            return 1, _Part((name,))
        cost = self._cost(part.operand)
        if part.test_only:
            return cost, _Part()
        reads = self._inference.of(part.operand).kind in (MAP, STRUCT, PARAM)
        return cost + reads, _Part((*self.part(part.operand).path, part.field))

    def _list(self, node: Any, part: Any) -> tuple[int, _Part]:
        cost = LIST_COST + sum(map(self._cost, part.elements))
        count = len(part.elements)
        return cost, _Part(size=Size(count, count), item=self._of_all(part.elements))

    def _structure(self, node: Any, part: Any) -> tuple[int, _Part]:
        cost = STRUCT_COST if part.message_name else MAP_COST
        for entry in part.entries:
            cost += self._cost(entry.value)
            if not part.message_name:
                cost += self._cost(entry.map_key)
        if part.message_name:
            return cost, _Part()
        count = len(part.entries)
        values = [entry.value for entry in part.entries]
        return cost, _Part(size=Size(count, count), item=self._of_all(values))

    def _of_all(self, nodes: Sequence[Any]) -> Size | None:
        return _either([self.size(one) for one in nodes])

    def _comprehension(self, node: Any, part: Any) -> tuple[int, _Part]:
        cost = self._cost(part.iter_range) + self._cost(part.accu_init)
        around = self._scope
        gathered = self.part(part.accu_init)._replace(size=self._known_size(part.accu_init))
        path = self.part(part.iter_range).path
        is_map = self._inference.of(part.iter_range).kind == MAP
        self._scope = {**around, part.accu_var: gathered}
        if part.iter_var2:
            self._scope[part.iter_var] = _Part((*path, KEYS if is_map else INDICES))
            self._scope[part.iter_var2] = _Part((*path, VALUES if is_map else ITEMS))
        else:
            self._scope[part.iter_var] = _Part((*path, KEYS if is_map else ITEMS))
        each = self._cost(part.loop_condition) + self._cost(part.loop_step)
        self._scope = {**around, part.accu_var: gathered}
        cost += self._cost(part.result)
        self._scope = around
        count = self.size(part.iter_range)
        kind = which(part.accu_init)
        made = _Part()
        if kind == "const":
            made = _Part(size=self.size(part.accu_init))
        elif kind in ("list", "structure") and part.iter_var != "#unused":
            made = _Part(size=count, item=self.part(part.loop_step).item)
        return cost + count.most * each, made

    def _known_size(self, node: Any) -> Size | None:
        """None where nothing is known, or where the path tells."""
        part = self.part(node)
        return part.size if part.size is not None or part.path else self.size(node)

    def _call(self, node: Any, part: Any) -> tuple[int, _Part]:
        name, arguments = part.function, list(part.args)
        ways = self._inference.ways.get(node.id, ())
        if part.HasField("target") and ways and ways[0].is_member:
            arguments = [part.target, *arguments]
        elif part.HasField("target"):
            name = f"{_dotted(part.target)}.{name}"
        costs = [self._cost(one) for one in arguments]
        if name == OPTIONAL_FIELD:
            return costs[0] + 1, _Part()
        if name in ("_&&_", "_||_"):
            return sum(costs), _Part()
        if name == "_?_:_":
            chosen = arguments[1:]
            item = _either_known([self.part(one).item for one in chosen])
            return costs[0] + max(costs[1:]), _Part(size=self._of_all(chosen), item=item)
        every = [self._of_way(name, way, arguments) for way in ways]
        cost = max((one.cost for one in every), default=0)
        known = [one.size for one in every if one.size is not None]
        path = self._indexed(name, ways, arguments)
        return cost + sum(costs), _Part(path, _either(known), self._items_of(name, arguments))

    def _of_way(self, name: str, way: Signature, arguments: list[Any]) -> Call:
        body = COSTS.get(name)
        return body(self, way, arguments) if body is not None else Call(1)

    def _indexed(self, name: str, ways: Sequence[Signature], arguments: list[Any]) -> Path:
        if name != "_[_]":
            return ()
        path: Path = ()
        for way in ways:
            if way.takes[0].kind in (LIST, MAP):
                step = ITEMS if way.takes[0].kind == LIST else VALUES
                path = (*self.part(arguments[0]).path, step)
        return path

    def _items_of(self, name: str, arguments: list[Any]) -> Size | None:
        """The size of the items of what a call makes."""
        if name != "_+_":
            return None
        return _either_known([self.part(one).item for one in arguments])


def _dotted(node: Any) -> str:
    names: list[str] = []
    while which(node) == "select":
        names.append(node.select.field)
        node = node.select.operand
    return ".".join((node.ident.name.removeprefix("."), *reversed(names)))


def _either(sizes: Sequence[Size]) -> Size | None:
    if not sizes:
        return None
    return Size(min(one.least for one in sizes), max(one.most for one in sizes))


def _either_known(sizes: Sequence[Size | None]) -> Size | None:
    return _either([one for one in sizes if one is not None])


class Call(NamedTuple):
    """What a call costs besides its arguments, and the size of what it makes."""

    cost: int
    size: Size | None = None


Costing = Callable[[Estimate, Signature, list[Any]], Call]


def _read(times: float = 1, position: int = 0) -> Costing:
    """An argument is read, that many times."""

    def cost(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
        return Call(share_of(at.size(arguments[position]).most, times * OF_TEXT))

    return cost


def _rewritten(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    size = at.size(arguments[0])
    return Call(share_of(size.most, OF_TEXT), size)


def _added(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    kind = way.takes[0].kind
    if kind not in ("string", "bytes", LIST):
        return Call(1)
    one, other = map(at.size, arguments)
    size = Size(capped(one.least + other.least), capped(one.most + other.most))
    return Call(1 if kind == LIST else share_of(size.most, OF_TEXT), size)


def _compared(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    return Call(share_of(min(at.size(one).most for one in arguments), OF_TEXT))


def _equal(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    names = {at.type_of(one).name for one in arguments}
    if len(names) == 1 and names & _ONE_STEP:
        return Call(1)
    if names == {"kubernetes.URL"}:
        return Call(share_of(max(at.size(one).most for one in arguments), OF_TEXT))
    return _compared(at, way, arguments)


def _ordered(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    return _compared(at, way, arguments) if way.takes[0].kind in ("string", "bytes") else Call(1)


def _contained(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    return Call(at.size(arguments[1]).most) if way.takes[1].kind == LIST else Call(1)


def _has_part(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    one, other = (share_of(at.size(argument).most, OF_TEXT) for argument in arguments)
    return Call(capped(one * other))


def _matched(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    text = share_of(capped(at.size(arguments[0]).most + 1), OF_TEXT)
    return Call(capped(text * share_of(at.size(arguments[1]).most, OF_PATTERN)))


def _found(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    return Call(_matched(at, way, arguments).cost, Size(0, at.size(arguments[0]).most))


def _index(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    return Call(1, at.part(arguments[0]).item)


def _unchanged(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    return Call(1, at.size(arguments[0]))


def _to_bytes(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    if way.takes[0].kind != "string":
        return Call(1)
    size = at.size(arguments[0])
    return Call(share_of(size.most, OF_TEXT), Size(size.least, capped(size.most * 4)))


def _to_text(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    if way.takes[0].kind != "bytes":
        return Call(1)
    size = at.size(arguments[0])
    return Call(share_of(size.most, OF_TEXT), Size(size.least // 4, size.most))


def _quoted(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    size = at.size(arguments[0])
    return Call(share_of(size.most, OF_TEXT), Size(size.least + 2, capped(size.most * 2 + 2)))


def _replaced(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    text, old, new = map(at.size, arguments[:3])
    if old.least == 0:
        most = (text.most + 1) * new.most + text.most
    else:
        most = max(text.most, math.ceil(text.most / old.least) * new.most)
    return Call(share_of(text.most, 2 * OF_TEXT), Size(0, capped(most)))


def _split(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    text = at.size(arguments[0])
    limit = arguments[2].const if len(arguments) > 2 else None
    most = text.most if limit is None or not limit.HasField("int") else limit.int % (MOST + 1)
    return Call(share_of(text.most, 2 * OF_TEXT), Size(0, most))


def _joined(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    count, is_known = at.size(arguments[0]).most, at.type_of(arguments[0]).kind == LIST
    item = at.size_of_items(arguments[0]) if is_known else Size(0, 0)
    between = at.size(arguments[1]).most if len(arguments) > 1 else 0
    most = capped(count * item.most + max(0, count - 1) * between)
    return Call(share_of(most, OF_TEXT), Size(0, most))


def _looked_through(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    """A list, item by item, or a text."""
    size = at.size(arguments[0])
    if way.takes[0].kind != LIST:
        return Call(share_of(size.most, OF_TEXT))
    item = at.type_of(arguments[0])
    each = 1
    if item.params and item.params[0].kind in ("string", "bytes"):
        each += share_of(at.size_of_items(arguments[0]).most, OF_TEXT)
    return Call(capped(size.most * each))


def _filled(count: Size, each: int = 1) -> Call:
    """A list that is made."""
    return Call(capped(count.most * each + MADE_COST), count)


def _pairs(at: Estimate, argument: Any) -> Size:
    size = at.size(argument)
    return Size(size.least**2, capped(size.most**2))


def _sorted(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    pairs = _pairs(at, arguments[-1])
    made = _filled(pairs, 2)
    of_text = way.takes[-1].params[0].kind in ("string", "bytes")
    return made._replace(cost=capped(made.cost + share_of(pairs.most, OF_TEXT))) if of_text else made


def _sliced(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    start, end = (one.const for one in arguments[1:])
    first = start.int if start.HasField("int") else 0
    last = end.int if end.HasField("int") else at.size(arguments[0]).most
    count = (last - first) % (MOST + 1)
    return _filled(Size(count, count))


def _flattened(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    depth = arguments[1].const.int if len(arguments) > 1 and arguments[1].const.HasField("int") else 1
    return _filled(at.size(arguments[0]), max(0, depth))


def _range(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    end = arguments[0].const
    return _filled(Size(0, max(0, end.int)) if end.HasField("int") else UNKNOWN)


def _sets(each: int) -> Costing:
    def cost(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
        one, other = map(at.size, arguments)
        return Call(capped(one.most * other.most * each + 1))

    return cost


def _within(base: int) -> Costing:
    """An address or a range in a range; what is text is read first."""

    def cost(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
        is_text = way.takes[1].kind == "string"
        return Call(base + (share_of(at.size(arguments[1]).most, OF_TEXT) if is_text else 0))

    return cost


def _validated(at: Estimate, way: Signature, arguments: list[Any]) -> Call:
    text = share_of(at.size(arguments[1]).most, OF_TEXT)
    return Call(capped(text * share_of(LONGEST_FORMAT, OF_PATTERN)))


COSTS: Mapping[str, Costing] = {
    "_==_": _equal,
    "_!=_": _equal,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    "_+_": _added,
    "_[_]": _index,
    "@in": _contained,
    "dyn": _unchanged,
    "bytes": _to_bytes,
    "string": _to_text,
    "contains": _has_part,
    "matches": _matched,
    **dict.fromkeys(("startsWith", "endsWith"), _read(position=1)),
    **dict.fromkeys(("find", "findAll"), _found),
    "format": _read(),
    **dict.fromkeys(
        ("lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "url"), _rewritten
    ),
    "strings.quote": _quoted,
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _looked_through),
    **dict.fromkeys(("sort", "@sortByAssociatedKeys"), _sorted),
    "distinct": lambda at, way, arguments: _filled(_pairs(at, arguments[0]), 2),
    "reverse": lambda at, way, arguments: _filled(at.size(arguments[0])),
    "slice": _sliced,
    "flatten": _flattened,
    "lists.range": _range,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    **dict.fromkeys(("quantity", "isQuantity", "isIP", "cidr", "isCIDR", "semver", "isSemver"), _read()),
    "ip": lambda at, way, arguments: Call(1) if way.is_member else _read()(at, way, arguments),
    "ip.isCanonical": _read(2),
    "containsIP": _within(IP_COST),
    "containsCIDR": _within(CIDR_COST),
    "validate": _validated,
    "check": lambda at, way, arguments: Call(CHECK_COST),
}
"""Of the functions that cost anything but 1."""
