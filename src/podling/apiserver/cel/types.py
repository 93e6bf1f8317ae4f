"""Types of expressions: how they are written, when one stands in for another, and what becomes of
parameters (`common/types` and `checker/types.go` of `cel-go`).

A type parameter is a type of kind `param`. `Substitutions` says what each was found to stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

PARAM, STRUCT, OPAQUE, LIST, MAP, TYPE = "param", "struct", "opaque", "list", "map", "type"
WRAPPER = "wrapper"
"""Of a value that may be null."""
OPTIONAL = "optional_type"
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_NULLABLE = frozenset(("null_type", "any", TIMESTAMP, DURATION, STRUCT, OPAQUE, WRAPPER))
_SHOWN = {"null_type": "null", TIMESTAMP: "timestamp", DURATION: "duration"}
_PLAIN = {
    "timestamp": TIMESTAMP,
    "duration": DURATION,
    **{
        name: name for name in ("bool", "int", "uint", "double", "string", "bytes", "dyn", "any", "null_type")
    },
}
_SIGNATURE = re.compile(
    r"(?:(?P<target>[\w.]+(?:<.*>)?)\.)?(?P<name>[^.(]+)\((?P<takes>.*)\): (?P<returns>.*)"
)
_TOKEN = re.compile(r"[\w.@~]+|[<>,]")


class Type(msgspec.Struct, frozen=True):
    """`name`: of a structure, an opaque type or a parameter."""

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()

    @property
    def is_open(self) -> bool:
        """Nothing is known of it, or it was told already that something is wrong."""
        return self.kind in ("dyn", "any", "error")

    @property
    def is_optional(self) -> bool:
        return self.kind == OPAQUE and self.name == OPTIONAL

    @property
    def shown(self) -> str:
        """As faults tell it."""
        return _written(self, _SHOWN)

    @property
    def go(self) -> str:
        """As Go writes it."""
        return _written(self, {})


DYN, ANY, ERROR, NULL = map(Type, ("dyn", "any", "error", "null_type"))
BOOL, INT, UINT, DOUBLE, STRING, BYTES = map(Type, ("bool", "int", "uint", "double", "string", "bytes"))


def list_of(item: Type) -> Type:
    return Type(LIST, "", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type(MAP, "", (key, value))


def optional_of(inner: Type) -> Type:
    return Type(OPAQUE, OPTIONAL, (inner,))


def wrapper(inner: Type) -> Type:
    return Type(WRAPPER, "", (inner,))


def without_wrapper(type_: Type) -> Type:
    return type_.params[0] if type_.kind == WRAPPER else type_


def without_wrappers(type_: Type) -> Type:
    """Within it, too."""
    plain = without_wrapper(type_)
    return Type(plain.kind, plain.name, tuple(map(without_wrappers, plain.params)))


def struct(name: str) -> Type:
    return Type(STRUCT, name)


def type_of(type_: Type) -> Type:
    return Type(TYPE, "", (type_,))


def _written(type_: Type, words: Mapping[str, str]) -> str:
    name = type_.name or words.get(type_.kind, type_.kind)
    if type_.kind == "error":
        return "!error!"
    inner = ", ".join(_written(one, words) for one in type_.params)
    return f"{name}({inner})" if inner else name


class Structures(Protocol):
    """What is known of structures."""

    def has(self, name: str) -> bool: ...

    def field(self, name: str, field: str) -> Type | None: ...


class Signature(msgspec.Struct, frozen=True):
    """One way of calling a function. `takes`: of a member, its target first."""

    takes: tuple[Type, ...]
    returns: Type
    is_member: bool = False
    is_generic: bool = False


def parsed_type(text: str) -> Type:
    """From `map<string, list<~T>>`."""
    return _parsed(iter([*_TOKEN.findall(text), ""]))[0]


def _parsed(tokens: Iterator[str]) -> tuple[Type, str]:
    """The type, and the token behind it."""
    word = next(tokens)
    params: list[Type] = []
    behind = next(tokens)
    if behind == "<":
        while behind in ("<", ","):
            inner, behind = _parsed(tokens)
            params.append(inner)
        behind = next(tokens)
    if word.startswith("~"):
        return Type(PARAM, word[1:]), behind
    if word in (LIST, MAP, TYPE):
        return Type(word, "", tuple(params)), behind
    if word == OPTIONAL:
        return Type(OPAQUE, word, tuple(params)), behind
    return Type(_PLAIN[word]) if word in _PLAIN else struct(word), behind


def parsed_signature(line: str) -> tuple[str, Signature]:
    """Name and signature, from `list<~T>.indexOf(~T): int`; dots within a name have a backslash."""
    found = _SIGNATURE.fullmatch(line.replace("\\.", "\0").replace("\\", ""))
    assert found, line
    takes = [found["target"]] if found["target"] else []
    takes += _separated(found["takes"])
    types = tuple(map(parsed_type, takes))
    signature = Signature(types, parsed_type(found["returns"]), bool(found["target"]), "~" in line)
    return found["name"].replace("\0", "."), signature


def _separated(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


class Substitutions:
    """What parameters stand for. What is only tried is tried on a copy."""

    __slots__ = ("found",)

    def __init__(self, found: dict[str, Type] | None = None) -> None:
        self.found = found or {}

    def copy(self) -> Substitutions:
        return Substitutions(dict(self.found))

    def substituted(self, type_: Type, *, params_are_open: bool = False) -> Type:
        if type_.kind == PARAM:
            if type_.name in self.found:
                return self.substituted(self.found[type_.name], params_are_open=params_are_open)
            return DYN if params_are_open else type_
        if not type_.params:
            return type_
        inner = tuple(self.substituted(one, params_are_open=params_are_open) for one in type_.params)
        return Type(type_.kind, type_.name, inner)

    def all_substituted(self, types: Mapping[int, Type]) -> dict[int, Type]:
        """Parameters are open. Types that are parts of several are substituted once."""
        known: dict[int, Type] = {}

        def made(type_: Type) -> Type:
            if type_.kind == PARAM:
                return made(self.found[type_.name]) if type_.name in self.found else DYN
            if not type_.params:
                return type_
            if id(type_) not in known:
                known[id(type_)] = Type(type_.kind, type_.name, tuple(map(made, type_.params)))
            return known[id(type_)]

        return {key: made(type_) for key, type_ in types.items()}

    def takes(self, one: Type, other: Type) -> bool:
        """Whether one stands where the other is wanted. Parameters are bound on the way."""
        if other.kind == PARAM:
            fits, was_bound = self._binds(one, other)
            if fits or was_bound:
                return fits
        if one.kind == PARAM:
            return self._binds(other, one)[0]
        if one.is_open or other.is_open:
            return True
        if one.kind == "null_type" or other.kind == "null_type":
            return (other if one.kind == "null_type" else one).kind in _NULLABLE
        one, other = without_wrapper(one), without_wrapper(other)
        if one.kind in (OPAQUE, LIST, MAP):
            return (
                one.kind == other.kind
                and one.name == other.name
                and len(one.params) == len(other.params)
                and self.takes_all(one.params, other.params)
            )
        return one.kind == other.kind and one.name == other.name

    def takes_all(self, many: Sequence[Type], others: Sequence[Type]) -> bool:
        return len(many) == len(others) and all(map(self.takes, many, others))

    def _binds(self, type_: Type, param: Type) -> tuple[bool, bool]:
        """Whether a parameter may stand for a type, and whether it stood for one before."""
        if type_ == param:
            return True, True
        if (bound := self.found.get(param.name)) is not None:
            if type_ == bound:
                return True, True
            if not self.takes(type_, bound):
                return False, True
            wider = wider_of(type_, bound)
            if not self._is_within(param, wider):
                self.found[param.name] = wider
            return True, True
        if self._is_within(param, type_):
            return False, False
        self.found[param.name] = type_
        return True, False

    def _is_within(self, param: Type, type_: Type) -> bool:
        if type_ == param:
            return True
        if type_.kind == PARAM:
            return type_.name in self.found and self._is_within(param, self.found[type_.name])
        return any(self._is_within(param, one) for one in type_.params)


def wider_of(one: Type, other: Type) -> Type:
    return one if _is_as_wide(one, other) else other


def _is_as_wide(one: Type, other: Type) -> bool:
    one, other = without_wrapper(one), without_wrapper(other)
    if one.kind in ("dyn", PARAM):
        return True
    if other.kind in ("dyn", PARAM) or one.kind != other.kind or one.name != other.name:
        return False
    if one.kind == TYPE:
        return True
    return len(one.params) == len(other.params) and all(map(_is_as_wide, one.params, other.params))
