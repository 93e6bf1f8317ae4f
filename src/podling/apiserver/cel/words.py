"""The faults of an expression in the words of `cel-go`, which Kubernetes has, from those of Google's C++
library.

Both know the same grammar and the same rules and tell most faults alike. They differ in a few sentences, in
the order, and in where an unknown name of several parts stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

INTRODUCTION = "compilation failed: "
MOST_TOLD, LONGEST_TOLD = 100, 32 * 1024
"""Faults, and characters, of one expression."""
LOGIC = ("_&&_", "_||_")
WIDE_DOT, WIDE_MARK = "\uff0e", "\uff3e"
"""Below letters that are not ASCII."""
_ERROR = re.compile(r"^(ERROR|WARNING): <input>:(-?\d+):(-?\d+): ", re.MULTILINE)
_OVERLOAD = re.compile(r"found no matching overload for '(?P<name>[^']*)' applied to '\((?P<types>.*)\)'")
_UNKNOWN = re.compile(r"undeclared reference to '(?P<name>[^']*)' \(in container ''\)")
_NO_SELECTION = re.compile(r"expression of type '(.*)' cannot be the operand of a select operation")
_PLAIN = re.compile(
    r"(?:null_type|bool|int|uint|double|string|bytes|(?:list|map|type)\(.*|google\.protobuf\..*)"
)
_REPLACED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"has\(\) argument must be a field selection"), "invalid argument to has() macro"),
    (
        re.compile(r"(?:all|exists|exists_one|existsOne)\(\) variable name must be a simple identifier"),
        "argument must be a simple name",
    ),
    (re.compile(r"\w+\(\) variable name must be a simple identifier"), "argument is not an identifier"),
    (re.compile(r"Invalid bytes literal: .*"), "unable to unescape string"),
    (re.compile(r"cannot be the range of a"), "cannot be range of a"),
    (re.compile(r"invalid hex (u?int) literal"), r"invalid \1 literal"),
    (re.compile(r"undefined field '(\w+)' not found in struct 'JSONPatch'"), r"undefined field '\1'"),
    (re.compile(r"undefined field '([^']*)' not found in struct '.*'"), r"undefined field '\1'"),
)
_TIME = re.compile(r"\bgoogle\.protobuf\.(Timestamp|Duration)\b")
_LAST_NAME = re.compile(r"\w+\s*$")
_OBJECT = re.compile(r"\w[\w.]{0,200}\s{0,200}\{")
_DOT = re.compile(r"\.\s*$")


class Fault(NamedTuple):
    """`line` is counted from 1, `column` in characters from 0; -1 stands for none."""

    line: int
    column: int
    message: str


def told(faults: Iterable[Fault], expression: str) -> str:
    """All faults, each with its line of the expression and a mark below it."""
    lines = expression.split("\n")
    said, length = [], 0
    for fault in sorted(islice(faults, MOST_TOLD), key=lambda fault: fault[:2]):
        said.append(_shown(fault, lines))
        length += len(said[-1])
        if length > LONGEST_TOLD:
            break
    return INTRODUCTION + "\n".join(said)


def _shown(fault: Fault, lines: list[str]) -> str:
    line, column, message = fault
    message = _TIME.sub(lambda found: found[1].lower(), message)
    said = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if not 1 <= line <= len(lines) or not lines[line - 1]:
        return said
    text = lines[line - 1].replace("\t", " ")
    before = "".join(WIDE_DOT if one > "\x7f" else "." for one in text[:column])
    mark = WIDE_MARK if text[column : column + 1] > "\x7f" else "^"
    return f"{said}\n | {text}\n | {before}{mark}"


def at_offset(offset: int, message: str, expression: str) -> Fault:
    before = expression[:offset]
    return Fault(before.count("\n") + 1, len(before) - before.rfind("\n") - 1, message)


def parsed(text: str, expression: str, misfit: Callable[[int, int], int]) -> Iterator[Fault]:
    """The faults that the library tells of. `misfit` finds an operand of a logical operator: from
    the offset of the operator, and the number of the operand, to its offset."""
    starts = line_starts(expression)
    found = list(_ERROR.finditer(text))
    for number, one in enumerate(found[:MOST_TOLD]):
        if one[1] == "WARNING" or (one[2] == "-1" and "parsetree" in text[one.end() : one.end() + 20]):
            continue
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        message = text[one.end() : end].partition("\n | ")[0].rstrip("\n")
        line, column = int(one[2]), int(one[3]) - 1
        offset = starts[line - 1] + column if 1 <= line <= len(starts) else -1
        if "'*error*'" not in message:
            yield from _in_gos_words(message, Fault(line, column, message), offset, expression, misfit)


def line_starts(expression: str) -> list[int]:
    starts = [0]
    for line in expression.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts[:-1]


def _in_gos_words(
    message: str, fault: Fault, offset: int, expression: str, misfit: Callable[[int, int], int]
) -> Iterator[Fault]:
    if (found := _OVERLOAD.fullmatch(message)) and found["name"] in LOGIC:
        for operand, type_ in enumerate(_first_of(found["types"])):
            if type_ not in ("bool", "dyn"):
                said = f"expected type 'bool' but found '{type_}'"
                yield at_offset(misfit(offset, operand), said, expression)
    elif found:
        yield _overload(found, fault, offset, expression)
    elif found := _UNKNOWN.fullmatch(message):
        yield _unknown(found["name"], fault, offset, expression)
    else:
        yield fault._replace(message=_replaced(message))


def _replaced(message: str) -> str:
    if found := _NO_SELECTION.fullmatch(message):
        type_ = found[1]
        said = f"type '{type_}' does not support field selection"
        return said if _PLAIN.fullmatch(type_) else f"unexpected failed resolution of '{type_}'"
    for pattern, words in _REPLACED:
        message = pattern.sub(words, message)
    return message.replace("Object_", "Object.")


def _overload(found: re.Match[str], fault: Fault, offset: int, expression: str) -> Fault:
    name, types = found["name"], re.sub(r"T%\d+", "dyn", found["types"]).replace("Object_", "Object.")
    types = re.sub(r"\bnull_type\b", "null", types)
    if is_member(expression, offset) and not name.startswith(("_", "@")) and "." not in name:
        target, arguments = _first_of(types)
        return fault._replace(
            message=f"found no matching overload for '{name}' applied to '{target}.({arguments})'"
        )
    return fault._replace(message=f"found no matching overload for '{name}' applied to '({types})'")


def _first_of(types: str) -> tuple[str, str]:
    """The first of types with commas between them, which types of several parts have, too, and the rest."""
    depth = 0
    for at, letter in enumerate(types):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            return types[:at], types[at + 2 :]
    return types, ""


def is_member(expression: str, offset: int) -> bool:
    """Whether the call whose parenthesis stands at `offset` is of a member."""
    name = _LAST_NAME.search(expression, max(0, offset - 200), offset)
    return name is not None and _DOT.search(expression, max(0, name.start() - 200), name.start()) is not None


def _unknown(name: str, fault: Fault, offset: int, expression: str) -> Fault:
    """Of `x.y.z`, whose last dot stands at `offset`, it is `x` that is not known. An object of an unknown
    type is known by its brace."""
    if offset >= 0 and (brace := _OBJECT.match(expression, offset)):
        said = f"undeclared reference to '{name}' (in container '')"
        return at_offset(brace.end() - 1, said, expression)
    if "." not in name:
        return fault
    at = offset
    for _ in range(name.count(".")):
        found = _LAST_NAME.search(expression, max(0, at - 200), at)
        if found is None:
            return fault
        start = found.start()
        dot = _DOT.search(expression, max(0, start - 200), start)
        at = dot.start() if dot is not None else start
        if dot is None:
            break
    return at_offset(at, f"undeclared reference to '{name.partition('.')[0]}' (in container '')", expression)
