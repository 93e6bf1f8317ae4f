"""An expression made into functions of Python, one for each of its parts, that follow `cel-go` in what they
answer, in their errors and in what they cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podling.apiserver.cel import addresses, authorizer, lists, objects, strings
from podling.apiserver.cel.charges import LIST_COST, MAP_COST, STRUCT_COST, charge_of
from podling.apiserver.cel.messages import NULL_VALUE, message_of
from podling.apiserver.cel.operators import KINDS, OPERATORS
from podling.apiserver.cel.parts import (
    Evaluation,
    Part,
    alternative,
    appended,
    bound,
    called,
    constant,
    failure,
    indexed,
    indexed_if_there,
    inserted,
    items_of,
    kept,
    logic,
    member_of,
    not_strictly_false,
    or_value,
    pairs_of,
    presence,
    qualifier_type,
    selection,
    slot,
    ternary,
    unwrapped,
    variable,
)
from podling.apiserver.cel.patterns import pattern_fault
from podling.apiserver.cel.tree import Tree, which
from podling.apiserver.cel.types import LIST, Signature
from podling.apiserver.cel.values import (
    ROOM,
    CelError,
    CostError,
    UInt,
    key_of,
    no_overload,
)

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **OPERATORS,
    **strings.FUNCTIONS,
    **lists.FUNCTIONS,
    **addresses.FUNCTIONS,
    **objects.FUNCTIONS,
    **authorizer.FUNCTIONS,
}
REQUEST_RESOURCE = "authorizer.requestResource"
"""A variable of its own, with a dot in its name."""
CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
"""Functions that are called once for all of a constant."""
_HASHED = frozenset((bool, int, UInt, float, str))
"""Types of constants among which a value is looked for without a charge."""
_PATTERNS = frozenset(("matches", "find", "findAll"))
"""Functions whose second argument is a regular expression."""
_INDICES: Mapping[str, Callable[[Part, Part, int], Part]] = {
    "_[_]": indexed,
    "_[?_]": indexed_if_there,
    "_?._": indexed_if_there,
}
_SPECIAL: Mapping[str, Callable[..., Part]] = {
    "_&&_": logic(False),
    "_||_": logic(True),
    "@not_strictly_false": not_strictly_false,
    "or": alternative,
    "orValue": or_value,
}


class Compiler:
    """Makes the functions of one expression. `ways`: in which ways its calls may be meant, by their ids.

    A path is a variable, or another part, with fields and indices: these cost 1 each, and the whole 1 more.
    What is only chosen (`a ? b.c : d`), or is itself an index, has not that one to pay.

    `fault`: what is wrong with conversions, patterns and indices that are constant, for which the expression
    is refused; empty for nothing."""

    def __init__(self, ways: Mapping[int, Sequence[Signature]]) -> None:
        self.slots = 0
        self.fault = ""
        self._ways = ways
        self._constants: dict[Part, Any] = {}
        self._starts: dict[int, Part] = {}
        """Of what is evaluated when it is first read, by its place."""

    def part(self, node: Any, scope: Mapping[str, int]) -> Part:
        what = which(node)
        made: Part = getattr(self, f"_{what}")(getattr(node, what), scope, node)
        return made

    def _fixed(self, value: Any) -> Part:
        made = constant(value)
        self._constants[made] = value
        return made

    def _const(self, part: Any, scope: Mapping[str, int], node: Any) -> Part:
        what = which(part)
        raw = getattr(part, what)
        return self._fixed(None if what == "null" else UInt(raw) if what == "uint" else raw)

    def _ident(self, part: Any, scope: Mapping[str, int], node: Any) -> Part:
        return self._path(node, scope, 1)

    def _select(self, part: Any, scope: Mapping[str, int], node: Any) -> Part:
        if not part.test_only:
            return self._path(node, scope, 1)
        return presence(self._operand(part.operand, scope, 0)[0], part.field)

    def _bare(self, node: Any, scope: Mapping[str, int]) -> Part:
        """Without what the whole of a path costs."""
        return self._path(node, scope, 0) if _is_path(node) else self.part(node, scope)

    def _path(self, node: Any, scope: Mapping[str, int], cost: int) -> Part:
        """`cost`: of the whole."""
        if which(node) == "ident":
            name = node.ident.name.removeprefix(".")
            if name in scope:
                index = scope[name]
                start = self._starts.get(index)
                return slot(index, cost) if start is None else bound(index, start, cost)
            return self._fixed(KINDS[name]) if name in KINDS else variable(name, cost)
        if which(node) == "select":
            field = node.select.field
            if name := _dotted(node.select.operand, scope):
                whole = f"{name}.{field}"
                if whole in KINDS:
                    return self._fixed(KINDS[whole])
                if whole == NULL_VALUE:
                    return self._fixed(0)
                if whole == REQUEST_RESOURCE:
                    return variable(whole, cost)
            operand, own = self._operand(node.select.operand, scope, cost)
            return selection(operand, field, own)
        operand, own = self._operand(node.call.args[0], scope, cost)
        key = self._bare(node.call.args[1], scope)
        if key in self._constants and (wrong := qualifier_type(self._constants[key])):
            self._wrong(f"invalid qualifier type: {wrong}")
        return _INDICES[node.call.function](operand, key, own)

    def _wrong(self, why: str) -> None:
        self.fault = self.fault or why

    def _operand(self, node: Any, scope: Mapping[str, int], cost: int) -> tuple[Part, int]:
        """What a path goes on from, and what of its cost is not yet paid there."""
        if _is_path(node):
            return self._path(node, scope, cost), 0
        is_chosen = which(node) == "call" and node.call.function == "_?_:_"
        return self.part(node, scope), 0 if is_chosen else cost

    def _list(self, part: Any, scope: Mapping[str, int], node: Any) -> Part:
        parts = [self.part(one, scope) for one in part.elements]
        optional = frozenset(part.optional_indices)
        if not optional and all(one in self._constants for one in parts):
            values = [self._constants[one] for one in parts]
            if values:
                return self._fixed(values)

        def made(at: Evaluation) -> list[Any]:
            try:
                values = [one(at) for one in parts]
            except CostError:
                raise
            except CelError:
                at.charge(LIST_COST)
                raise
            at.charge(LIST_COST)
            if optional:
                values = [
                    unwrapped(one).value if i in optional else one
                    for i, one in enumerate(values)
                    if i not in optional or unwrapped(one).is_there
                ]
            return values

        return made if parts else self._empty(list)

    def _structure(self, part: Any, scope: Mapping[str, int], node: Any) -> Part:
        name = part.message_name.removeprefix(".")
        entries = [
            (
                self._fixed(entry.field_key) if name else self.part(entry.map_key, scope),
                self.part(entry.value, scope),
                entry.optional,
            )
            for entry in part.entries
        ]

        def fields_of(at: Evaluation) -> dict[Any, Any]:
            fields: dict[Any, Any] = {}
            for key_part, value_part, optional in entries:
                key, value = key_part(at), value_part(at)
                if optional:
                    if not unwrapped(value).is_there:
                        continue
                    value = value.value
                fields[key_of(key)] = value
            return fields

        cost = STRUCT_COST if name else MAP_COST
        if not name and not any(optional for _, _, optional in entries):
            pairs = [(key, value) for key, value, _ in entries]
            if pairs and all(one in self._constants for pair in pairs for one in pair):
                return self._converted(fields_of)

        def made(at: Evaluation) -> Any:
            try:
                fields = fields_of(at)
            except CostError:
                raise
            except CelError:
                at.charge(cost)
                raise
            at.charge(cost)
            return message_of(at, name, fields) if name else fields

        return made if entries or name else self._empty(dict)

    def _empty(self, of: type) -> Part:
        """Another each time, since a comprehension may let it grow."""

        def made(at: Evaluation) -> Any:
            return of()

        self._constants[made] = of()
        return made

    def _call(self, part: Any, scope: Mapping[str, int], node: Any) -> Part:
        function, nodes = part.function, list(part.args)
        if part.HasField("target"):
            name = _dotted(part.target, scope)
            if name and f"{name}.{function}" in FUNCTIONS:
                function = f"{name}.{function}"
            else:
                nodes = [part.target, *nodes]
        if function in _INDICES and len(nodes) == 2:
            return self._path(node, scope, 1)
        if function == "_?_:_":
            return ternary(self.part(nodes[0], scope), *(self._bare(one, scope) for one in nodes[1:]))
        parts = [self.part(one, scope) for one in nodes]
        if function in _SPECIAL and _takes(_SPECIAL[function], len(parts) - 1):
            return _SPECIAL[function](*parts)
        function = function.removeprefix(".")
        body = (FUNCTIONS.get(f".{function}") if part.HasField("target") else None) or FUNCTIONS.get(function)
        if body is None or not _takes(body, len(parts)):
            return failure(no_overload(function))
        ways = self._ways.get(node.id, ())
        made = called(body, parts, charge_of(function, ways))
        if function in CONVERSIONS and parts[0] in self._constants:
            return self._converted(made, is_conversion=True)
        if function in _PATTERNS and type(pattern := self._constants.get(parts[1])) is str:
            self._wrong(pattern_fault(pattern))
        if function == "@in" and len(ways) == 1 and ways[0].takes[1].kind == LIST:
            return self._looked_up(body, parts) or made
        return made

    def _converted(self, made: Part, *, is_conversion: bool = False) -> Part:
        """What needs nothing but constants is evaluated now."""
        try:
            return self._fixed(made(Evaluation({}, 0, ROOM)))
        except CelError as error:
            if is_conversion:
                self._wrong(str(error))
            return made

    def _looked_up(self, body: Callable[..., Any], parts: Sequence[Part]) -> Part | None:
        """`x in [1, 2]`; None if these are no such constants."""
        values = self._constants.get(parts[1])
        if values is None or any(type(one) not in _HASHED for one in values):
            return None
        return member_of(parts[0], body, values) if values else self._fixed(False)

    def _comprehension(self, part: Any, scope: Mapping[str, int], node: Any) -> Part:
        first, second, gathered = self.slots, self.slots + 1, self.slots + 2
        self.slots += 3
        if which(part.iter_range) == "list" and not part.iter_range.list.elements:
            return self._bound(part, scope, gathered)
        within = {**scope, part.iter_var: first, part.accu_var: gathered}
        if part.iter_var2:
            within[part.iter_var2] = second
        within = {**within, part.accu_var: gathered}
        values, start = self.part(part.iter_range, scope), self.part(part.accu_init, scope)
        goes_on = part.loop_condition
        is_endless = which(goes_on) == "const" and goes_on.const.bool is True
        condition = None if is_endless else self.part(goes_on, within)
        step = self._step(part.loop_step, within, part.accu_var, part.accu_init)
        result = self.part(part.result, {**scope, part.accu_var: gathered})
        has_two = bool(part.iter_var2)

        def folded(at: Evaluation) -> Any:
            many = values(at)
            slots = at.slots
            pairs = pairs_of(many) if has_two else items_of(many)
            slots[gathered] = kept(start, at)
            for one in pairs:
                if has_two:
                    slots[first], slots[second] = one
                else:
                    slots[first] = one
                if condition is not None and condition(at) is False:
                    break
                slots[gathered] = kept(step, at)
            return result(at)

        return folded

    def _bound(self, part: Any, scope: Mapping[str, int], index: int) -> Part:
        """`cel.bind`, and other loops over nothing."""
        self._starts[index] = self.part(part.accu_init, scope)
        result = self.part(part.result, {**scope, part.accu_var: index})

        def begun(at: Evaluation) -> Any:
            at.slots[index] = None
            return result(at)

        return begun

    def _step(self, node: Any, scope: Mapping[str, int], name: str, start: Any) -> Part:
        """A list or a map that only the comprehension itself knows grows in place."""
        is_list, is_map = which(start) == "list", which(start) == "structure"
        if which(node) != "call":
            return self.part(node, scope)
        call = node.call
        is_of_gathered = bool(call.args) and call.args[0].ident.name == name
        if call.function == "_?_:_":
            chosen = [
                self._bare(one, scope) if _is_path(one) else self._step(one, scope, name, start)
                for one in call.args[1:]
            ]
            return ternary(self.part(call.args[0], scope), *chosen)
        if is_list and call.function == "_+_" and is_of_gathered and which(call.args[1]) == "list":
            return appended(self.part(call.args[0], scope), self.part(call.args[1], scope))
        if is_map and call.function == "cel.@mapInsert" and is_of_gathered:
            return inserted(*(self.part(one, scope) for one in call.args))
        return self.part(node, scope)


def constant_fault(tree: Tree) -> str:
    """What is wrong with the constants of an expression that is otherwise right; empty for nothing. Raises
    RecursionError."""
    compiler = Compiler({})
    compiler.part(tree.root, {})
    return compiler.fault


def _dotted(node: Any, scope: Mapping[str, int]) -> str:
    """The name that identifiers and selections make; empty if they do not, or begin with a variable of the
    expression's own."""
    parts = []
    while which(node) == "select" and not node.select.test_only:
        parts.append(node.select.field)
        node = node.select.operand
    if which(node) != "ident" or node.ident.name in scope:
        return ""
    return ".".join((node.ident.name.removeprefix("."), *reversed(parts)))


def _is_path(node: Any) -> bool:
    what = which(node)
    if what == "select":
        return not node.select.test_only
    return what == "ident" or (what == "call" and node.call.function in _INDICES)


def _takes(body: Callable[..., Any], count: int) -> bool:
    """Whether it can be called with so many arguments after the first."""
    try:
        inspect.signature(body).bind(None, *range(count))
    except TypeError:
        return False
    return True
