"""What Kubernetes asks of the literals in an expression that is otherwise right: one type for all items of a
list, and durations, times, patterns and formats that can be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from typing import Any

from cel_expr_python import cel

from podling.apiserver.cel.tree import Tree

_WRAPPER = re.compile(r"\bwrapper\((\w+)\)")
LITERALS = {"duration": "duration", "timestamp": "timestamp", "matches": "'a'.matches"}
TIMES = frozenset(("duration", "timestamp"))
CONVERSIONS = frozenset(("int", "uint", "double", "bool"))
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


def literal_faults(tree: Tree, plain: Any) -> Iterator[tuple[int, str]]:
    """Offset and message of each. `plain`: an environment in which literals can be evaluated."""
    exempt = {
        one.id
        for part in tree.parts()
        if part.HasField("call") and part.call.function == "format"
        for one in all_below(tree, part)
    }
    for part in tree.parts():
        if part.HasField("list") and part.id not in exempt:
            yield from list_faults(tree, part.list)
        elif part.HasField("structure") and not part.structure.message_name and part.id not in exempt:
            yield from map_faults(tree, part.structure)
        elif part.HasField("call"):
            yield from call_faults(tree, part, plain)
        elif part.const.HasField("double") and math.isinf(part.const.double):
            yield tree.position(part.id), "invalid double literal"


def all_below(tree: Tree, part: Any) -> Iterator[Any]:
    below = Tree.__new__(Tree)
    below.root = part
    yield from below.parts()


def _misfit(tree: Tree, expected: str, part: Any, found: str) -> tuple[int, str]:
    expected, found = (re.sub(r"\bnull_type\b", "null", type_) for type_ in (expected, found))
    return tree.start(part), f"expected type '{expected}' but found '{found}'"


def _inner(type_: str, *, optional: bool) -> str:
    return type_.removeprefix("optional_type(").removesuffix(")") if optional else type_


def _plain(type_: str) -> str:
    """What may be null counts as what it is otherwise."""
    return _WRAPPER.sub(r"\1", type_)


def list_faults(tree: Tree, part: Any) -> Iterator[tuple[int, str]]:
    optional, first = set(part.optional_indices), ""
    for at, item in enumerate(part.elements):
        type_ = _inner(tree.type_of(item), optional=at in optional)
        first = first or type_
        if _plain(type_) != _plain(first):
            yield _misfit(tree, first, item, type_)
            return


def map_faults(tree: Tree, part: Any) -> Iterator[tuple[int, str]]:
    first: tuple[str, str] | None = None
    for entry in part.entries:
        types = tree.type_of(entry.map_key), _inner(tree.type_of(entry.value), optional=entry.optional)
        first = first or types
        if _plain(types[0]) != _plain(first[0]):
            yield _misfit(tree, first[0], entry.map_key, types[0])
        if _plain(types[1]) != _plain(first[1]):
            yield _misfit(tree, first[1], entry.value, types[1])


def call_faults(tree: Tree, part: Any, plain: Any) -> Iterator[tuple[int, str]]:
    call = part.call
    arguments = list(call.args)
    last = arguments[-1] if arguments else None
    if call.function in TIMES and last is not None and last.const.HasField("null"):
        yield tree.position(last.id), f"invalid {call.function} argument"
    elif call.function in LITERALS and last is not None and last.const.HasField("string"):
        if _is_error(plain, f"{LITERALS[call.function]}({_quoted(last.const.string)})"):
            yield tree.position(last.id), f"invalid {call.function} argument"
    elif call.function == "flatten" and not arguments:
        # The library flattens any list, Go only one of lists.
        type_ = tree.type_of(call.target)
        if type_.startswith("list(") and not type_.startswith(("list(list(", "list(dyn)")):
            why = f"found no matching overload for 'flatten' applied to '{type_}.()'"
            yield tree.position(part.id), why
    elif call.function == "format" and call.target.const.HasField("string") and arguments[0].HasField("list"):
        yield from format_faults(tree, part)


def constant_fault(tree: Tree, plain: Any) -> str:
    """Kubernetes evaluates what is constant before it takes an expression."""
    for part in tree.parts():
        call = part.call
        if not part.HasField("call") or not call.args:
            continue
        if call.function in ("int", "string") and call.args[0].const.HasField("null"):
            return f"no such overload: {call.function}(null_type)"
        if not call.args[0].const.HasField("string"):
            continue
        text = call.args[0].const.string
        if call.function in ("find", "findAll") and _is_error(plain, f"'a'.matches({_quoted(text)})"):
            return f"error parsing regexp: `{text}`"
        if call.function in CONVERSIONS and _is_error(plain, f"{call.function}({_quoted(text)})"):
            return f"type conversion error from 'string' to '{call.function}'"
    return ""


def _is_error(plain: Any, text: str) -> bool:
    try:
        return bool(plain.compile(text).eval(data={}).type() == cel.Type.ERROR)
    except RuntimeError:
        return True


def _quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(one):08x}" for one in text) + '"'


def _named(tree: Tree, part: Any) -> str:
    """The name of a type, without what it holds."""
    name = _plain(tree.type_of(part)).partition("(")[0]
    return "google.protobuf.Any" if name == "any" else name


def _unfit(tree: Tree, part: Any, allowed: Collection[str]) -> Any:
    """What a clause for these types does not show: an argument, or what is written out in it; None for
    nothing."""
    waiting = [part]
    while waiting:
        at = waiting.pop()
        if _named(tree, at) not in (*allowed, "dyn"):
            return at
        if at.HasField("list"):
            waiting.extend(reversed(at.list.elements))
        elif at.HasField("structure"):
            for entry in reversed(at.structure.entries):
                waiting.extend((entry.value, entry.map_key) if entry.HasField("map_key") else ())
    return None


def format_faults(tree: Tree, part: Any) -> Iterator[tuple[int, str]]:
    """The first of a format and its arguments."""
    used, given = 0, list(part.call.args[0].list.elements)
    for found in _CLAUSE.finditer(part.call.target.const.string):
        letter, precision = found["letter"], found["precision"]
        if found["percent"]:
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
            unfit = _unfit(tree, given[used], allowed)
            if unfit is not None:
                where, why = unfit, f"error during formatting: {words}, was given {_named(tree, unfit)}"
        if why:
            yield tree.start(where), why
            return
        used += 1
    if used < len(given):
        why = f"too many arguments supplied to string.format (expected {used}, got {len(given)})"
        yield tree.position(part.id), why
