"""The faults of an expression as `cel-go` shows them. Google's C++ library tells those of syntax: it knows
the same grammar, and has other words for a few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

INTRODUCTION, SYNTAX = "compilation failed: ", "Syntax error: "
MOST_TOLD, LONGEST_TOLD = 100, 32 * 1024
"""Faults, and characters, of one expression."""
WIDE_DOT, WIDE_MARK = "\uff0e", "\uff3e"
"""Below letters that are not ASCII."""
_ERROR = re.compile(r"^(ERROR|WARNING): <input>:(-?\d+):(-?\d+): ", re.MULTILINE)
_REPLACED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"has\(\) argument must be a field selection"), "invalid argument to has() macro"),
    (
        re.compile(r"(?:all|exists|exists_one|existsOne)\(\) variable name must be a simple identifier"),
        "argument must be a simple name",
    ),
    (re.compile(r"\w+\(\) variable name must be a simple identifier"), "argument is not an identifier"),
    (re.compile(r"Invalid bytes literal: .*"), "unable to unescape string"),
    (re.compile(r"invalid hex (u?int) literal"), r"invalid \1 literal"),
)
_MADE = re.compile(r"\.?\s*+[A-Za-z_]\w*+\s*+(?>(?:\.\s*+[A-Za-z_]\w*+\s*+)*)\{", re.ASCII)
"""The message that is made where an argument stands: Kubernetes says that it stands at the brace."""
_NOWHERE = frozenset(("-1", str((1 << 32) - 1)))
"""The line of what stands at no place."""
_TIME = re.compile(r"\bgoogle\.protobuf\.(Timestamp|Duration)\b")


class Fault(NamedTuple):
    """`line` is counted from 1, `column` in characters from 0; -1 stands for none."""

    line: int
    column: int
    message: str


def told(faults: Sequence[Fault], expression: str, more: int = 0) -> str:
    """The first faults, each with its line of the expression and a mark below it. `more`: how many there are
    beside these."""
    lines = expression.split("\n")
    said, length = [], 0
    for fault in sorted(faults[:MOST_TOLD], key=lambda fault: fault[:2]):
        said.append(_shown(fault, lines))
        length += len(said[-1])
        if length > LONGEST_TOLD:
            break
    if left := more + len(faults) - len(said):
        said.append(f"{left} more errors were truncated")
    return INTRODUCTION + "\n".join(said)


def _shown(fault: Fault, lines: list[str]) -> str:
    line, column, message = fault
    message = _TIME.sub(lambda found: found[1].lower(), message)
    said = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if not 1 <= line <= len(lines) or lines == [""]:
        return said
    text = lines[line - 1].replace("\t", " ")
    before = "".join(WIDE_DOT if one > "\x7f" else "." for one in text[:column])
    mark = WIDE_MARK if text[column : column + 1] > "\x7f" else "^"
    return f"{said}\n | {text}\n | {before}{mark}"


def at_offset(offset: int, message: str, expression: str) -> Fault:
    before = expression[:offset]
    return Fault(before.count("\n") + 1, len(before) - before.rfind("\n") - 1, message)


def faults_in(text: str, expression: str) -> Iterator[Fault]:
    """The faults that the library tells of."""
    lines = expression.split("\n")
    found = list(_ERROR.finditer(text))
    for number, one in enumerate(found):
        if one[1] == "WARNING" or (one[2] in _NOWHERE and "parsetree" in text[one.end() : one.end() + 20]):
            continue
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        message = text[one.end() : end].partition("\n | ")[0].rstrip("\n")
        line, column = int(one[2]), int(one[3]) - 1
        for pattern, words in _REPLACED:
            message = pattern.sub(words, message)
        if "argument" in message and (made := _MADE.match(lines[line - 1], column)):
            column = made.end() - 1
        yield Fault(line, column, message)
