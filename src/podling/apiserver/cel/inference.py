"""The types of the parts of an expression, and what does not fit, in the words of `cel-go`
(`checker/checker.go`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from podling.apiserver.cel.messages import ALSO, MESSAGES, NULL_VALUE
from podling.apiserver.cel.tree import Tree, which
from podling.apiserver.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    LIST,
    MAP,
    NULL,
    PARAM,
    STRING,
    STRUCT,
    TYPE,
    UINT,
    Signature,
    Structures,
    Substitutions,
    Type,
    list_of,
    map_of,
    optional_of,
    parsed_signature,
    parsed_type,
    struct,
    type_of,
    wider_of,
)

FILES = ("standard.txt", "functions.txt")
LOGIC = frozenset(("_&&_", "_||_"))
OPTIONAL_FIELD = "_?._"
_CONSTANTS = {
    "null": NULL,
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
}
_NAMED = {
    **{name: name for name in ("bool", "bytes", "double", "duration", "int", "null_type", "string")},
    **{name: name for name in ("timestamp", "uint", "optional_type", "net.IP", "net.CIDR")},
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "list": "list<dyn>",
    "map": "map<dyn, dyn>",
}
TYPES: Mapping[str, Type] = {
    **{name: type_of(parsed_type(text)) for name, text in _NAMED.items()},
    "type": type_of(Type(TYPE)),
    **{name: type_of(message.type) for name, message in MESSAGES.items()},
}
"""Types that are known by name, as values."""
_WITHOUT_FIELDS = ("net.CIDR", "net.IP")
"""Others have fields, of which none is found."""
_PLAIN = frozenset(_NAMED) - {"optional_type", "net.IP", "net.CIDR"} | {"type"}
"""Names of types that have fields, of which none is known."""

Functions = Mapping[str, Sequence[Signature]]


@cache
def functions() -> Functions:
    """Every function by its name, with the ways of calling it."""
    found: dict[str, list[Signature]] = {}
    for name in FILES:
        for line in (files(__package__) / name).read_text().splitlines():
            if not line.startswith("#"):
                function, signature = parsed_signature(line)
                found.setdefault(function, []).append(signature)
    return found


class Known(msgspec.Struct, frozen=True):
    """What an expression may name: variables by name, structures, and functions."""

    variables: Mapping[str, Type]
    structures: Structures
    functions: Functions


class Inference:
    """The types of an expression. `types`: of its parts, by their ids. `ways`: for calls, every signature
    that fits. `faults`: offset and message."""

    def __init__(self, tree: Tree, known: Known) -> None:
        self.types: dict[int, Type] = {}
        self.ways: dict[int, list[Signature]] = {}
        self.faults: list[tuple[int, str]] = []
        self.names: dict[int, str] = {}
        """Of selections that are the parts of a name."""
        self.tree, self._known = tree, known
        self._bound, self._params = Substitutions(), 0
        self._scopes: list[dict[str, Type]] = [dict(known.variables)]
        self._check(tree.root)
        self.types = self._bound.all_substituted(self.types)

    def of(self, node: Any) -> Type:
        return self.types.get(node.id, DYN)

    @property
    def result(self) -> Type:
        return self.of(self.tree.root)

    def _check(self, node: Any) -> Type:
        what = which(node)
        made: Type = getattr(self, f"_{what}")(node, getattr(node, what))
        self.types[node.id] = made
        return made

    def _fault(self, node: Any, message: str) -> None:
        self.faults.append((self.tree.start(node), message))

    def _misfit(self, node: Any, wanted: Type, found: Type) -> None:
        self._fault(node, f"expected type '{wanted.shown}' but found '{found.shown}'")

    def _undeclared(self, node: Any, name: str) -> Type:
        self._fault(node, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _takes(self, one: Sequence[Type], other: Sequence[Type]) -> bool:
        """Whether types fit; what parameters stand for is kept only if they do."""
        tried = self._bound.copy()
        if tried.takes_all(one, other):
            self._bound = tried
            return True
        return False

    def _const(self, node: Any, part: Any) -> Type:
        return _CONSTANTS[which(part)]

    def _ident(self, node: Any, part: Any) -> Type:
        return self._named(part.name) or self._undeclared(node, part.name)

    def _named(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        if name in TYPES:
            return TYPES[name]
        if name == NULL_VALUE:
            return INT
        return type_of(struct(name)) if self._known.structures.has(name) else None

    def _select(self, node: Any, part: Any) -> Type:
        name = self._dotted(node)
        if name and (found := self._named(name)) is not None:
            self.names[node.id] = name
            return BOOL if part.test_only else found
        type_ = self._field(node, part.operand, part.field, optional=False)
        return BOOL if part.test_only else type_

    def _dotted(self, node: Any) -> str:
        """The name that identifiers and selections make; empty if they make none, or begin with a variable of
        the expression's own."""
        names: list[str] = []
        while which(node) == "select" and not node.select.test_only:
            names.append(node.select.field)
            node = node.select.operand
        if which(node) != "ident" or any(node.ident.name in scope for scope in self._scopes[1:]):
            return ""
        return ".".join((node.ident.name.removeprefix("."), *reversed(names)))

    def _field(self, node: Any, operand: Any, field: str, *, optional: bool) -> Type:
        type_ = self._bound.substituted(self._check(operand))
        made = ERROR
        if type_.is_optional:
            type_, optional = type_.params[0], True
        if type_.kind == MAP:
            made = type_.params[1]
        elif type_.kind == STRUCT and type_.name not in _WITHOUT_FIELDS:
            made = self._field_of(node, type_.name, field)
        elif type_.kind == PARAM:
            self._takes([DYN], [type_])
            made = DYN
        elif type_.is_open:
            made = DYN
        else:
            self._fault(node, f"type '{type_.shown}' does not support field selection")
            made = DYN
        return optional_of(made) if optional else made

    def _field_of(self, node: Any, name: str, field: str) -> Type:
        if name in MESSAGES:
            return self._undefined(node, field)
        if not self._known.structures.has(name):
            self._fault(node, f"unexpected failed resolution of '{name}'")
            return ERROR
        found = self._known.structures.field(name, field)
        return self._undefined(node, field) if found is None else found

    def _call(self, node: Any, part: Any) -> Type:
        name, arguments = part.function, list(part.args)
        if name == OPTIONAL_FIELD:
            return self._optional_field(node, arguments)
        for one in arguments:
            self._check(one)
        if part.HasField("target"):
            whole = f"{self._dotted(part.target)}.{name}"
            if whole in self._known.functions and not whole.startswith("."):
                return self._resolved(node, whole, None, arguments)
            self._check(part.target)
            if name not in self._known.functions:
                return self._undeclared(node, name)
            return self._resolved(node, name, part.target, arguments)
        known = name.removeprefix(".")
        if known not in self._known.functions:
            return self._undeclared(node, name)
        return self._resolved(node, known, None, arguments)

    def _optional_field(self, node: Any, arguments: list[Any]) -> Type:
        operand, field = arguments
        if field.const.HasField("string"):
            self.types[field.id] = STRING
            return self._field(node, operand, field.const.string, optional=True)
        self._fault(node, "unsupported optional field selection")
        return ERROR

    def _resolved(self, node: Any, name: str, target: Any, arguments: list[Any]) -> Type:
        given = [self.types[one.id] for one in ([target] if target is not None else []) + arguments]
        if name in LOGIC:
            return self._logic(node, name, arguments, given)
        returns: Type | None = None
        for way in self._known.functions[name]:
            if way.is_member != (target is not None) or len(way.takes) != len(given):
                continue
            fresh = self._fresh(way) if way.is_generic else way
            if not self._takes(given, fresh.takes):
                continue
            self.ways.setdefault(node.id, []).append(way)
            type_ = self._bound.substituted(fresh.returns)
            if returns is None:
                returns = type_
            elif returns.kind != "dyn" and type_ != returns:
                returns = DYN
        if returns is not None:
            return returns
        shown = [self._bound.substituted(one, params_are_open=True).shown for one in given]
        told = f"({', '.join(shown)})" if target is None else f"{shown[0]}.({', '.join(shown[1:])})"
        self._fault(node, f"found no matching overload for '{name}' applied to '{told}'")
        return ERROR

    def _logic(self, node: Any, name: str, arguments: list[Any], given: list[Type]) -> Type:
        wrong = False
        for one, type_ in zip(arguments, given, strict=True):
            if not self._takes([type_], [BOOL]):
                self._misfit(one, BOOL, type_)
                wrong = True
        self.ways[node.id] = list(self._known.functions[name])
        return ERROR if wrong else BOOL

    def _fresh(self, way: Signature) -> Signature:
        """With parameters that stand for nothing yet."""
        self._params += 1

        def renamed(type_: Type) -> Type:
            if type_.kind == PARAM:
                return Type(PARAM, f"{type_.name}{self._params}")
            return Type(type_.kind, type_.name, tuple(map(renamed, type_.params))) if type_.params else type_

        return Signature(tuple(map(renamed, way.takes)), renamed(way.returns), way.is_member)

    def _list(self, node: Any, part: Any) -> Type:
        optional, item = frozenset(part.optional_indices), None
        for at, one in enumerate(part.elements):
            item = self._joined(item, self._element(one, is_optional=at in optional))
        return list_of(self._param() if item is None else item)

    def _param(self) -> Type:
        self._params += 1
        return Type(PARAM, f"#{self._params}")

    def _element(self, value: Any, *, is_optional: bool) -> Type:
        type_ = self._check(value)
        if not is_optional:
            return type_
        if type_.is_optional:
            return type_.params[0]
        if type_.kind != "dyn":
            self._misfit(value, optional_of(type_), type_)
        return type_

    def _joined(self, before: Type | None, type_: Type) -> Type:
        if before is None:
            return type_
        return wider_of(before, type_) if self._takes([before], [type_]) else DYN

    def _structure(self, node: Any, part: Any) -> Type:
        if part.message_name:
            return self._object(node, part)
        key: Type | None = None
        value: Type | None = None
        for entry in part.entries:
            key = self._joined(key, self._check(entry.map_key))
            value = self._joined(value, self._element(entry.value, is_optional=entry.optional))
        if key is None or value is None:
            return map_of(self._param(), self._param())
        return map_of(key, value)

    def _object(self, node: Any, part: Any) -> Type:
        name = part.message_name.removeprefix(".")
        message = MESSAGES.get(name) or ALSO.get(name)
        found, made = self._named(name), ERROR
        if message is not None:
            made = message.type
        elif found is None:
            return self._unknown_object(node, part, name)
        elif found.kind != TYPE:
            self._fault(node, f"'{found.shown}' is not a type")
        elif name in TYPES or found.params[0].kind != STRUCT:
            self._fault(node, f"'{name}' is not a message type")
        else:
            made = found.params[0]
        for entry in part.entries:
            given = self._element(entry.value, is_optional=entry.optional)
            if message is not None or name in _PLAIN:
                fields = message.fields if message is not None else {}
                wanted = fields.get(entry.field_key) or self._undefined(entry, entry.field_key)
            else:
                wanted = self._field_of(entry, name, entry.field_key)
            if not self._takes([wanted], [given]):
                why = f"expected type of field '{entry.field_key}' is '{wanted.shown}'"
                self._fault(entry, f"{why} but provided type is '{given.shown}'")
        return made

    def _unknown_object(self, node: Any, part: Any, name: str) -> Type:
        """What is wrong inside of it is not told."""
        self._undeclared(node, name)
        told = len(self.faults)
        for entry in part.entries:
            self._check(entry.value)
        del self.faults[told:]
        return ERROR

    def _undefined(self, node: Any, field: str) -> Type:
        self._fault(node, f"undefined field '{field}'")
        return ERROR

    def _comprehension(self, node: Any, part: Any) -> Type:
        many, gathered = self._bound.substituted(self._check(part.iter_range)), self._check(part.accu_init)
        first, second = self._ranged(part.iter_range, many, has_two=bool(part.iter_var2))
        self._scopes.append({part.accu_var: gathered})
        names = {part.iter_var: first}
        if part.iter_var2:
            names[part.iter_var2] = second
        self._scopes.append(names)
        for one, wanted in ((part.loop_condition, BOOL), (part.loop_step, gathered)):
            found = self._check(one)
            if not self._takes([wanted], [found]):
                self._misfit(one, wanted, found)
        self._scopes.pop()
        result = self._check(part.result)
        self._scopes.pop()
        return self._bound.substituted(result)

    def _ranged(self, node: Any, many: Type, *, has_two: bool) -> tuple[Type, Type]:
        """The types of the variables of a loop."""
        if many.kind == LIST:
            item = many.params[0]
            return (INT, item) if has_two else (item, ERROR)
        if many.kind == MAP:
            return many.params[0], many.params[1]
        if (many.is_open and many != ANY) or many.kind == PARAM:
            self._takes([DYN], [many])
            return DYN, DYN
        why = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._fault(node, f"expression of type '{many.shown}' {why}")
        return ERROR, ERROR
