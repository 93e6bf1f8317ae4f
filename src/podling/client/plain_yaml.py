"""The YAML in which kubectl writes kubeconfigs: mappings and lists in block style, scalars of one line.

PyYAML takes longer to be imported than anything else that a command needs before its first request. Here each
line says by itself what it is. A text with a line that does not is not read, so that PyYAML is asked; any
other is read as PyYAML would.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_LINE = re.compile(
    r"""(?P<indent>\ *)(?P<dash>-\ )?
    (?:(?P<key>[A-Za-z][\w./-]{0,99}):(?:\ |$))?
    (?:(?P<plain>(?:--?)?[A-Za-z/](?:[\w./@+=,-]|:(?!$))*)
      |"(?P<double>[\ !\#-\[\]-~]*)"|'(?P<single>[\ -&(-~]*)'|(?P<empty>\{\}|\[\])
    )?""",
    re.ASCII | re.VERBOSE,
)
_VALUES: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NO_STRINGS = frozenset({*_VALUES, "yes", "no", "on", "off"})
"""In small letters, capitals, or with a capital."""
_DEEPEST = 20


class _Unread(Exception):
    """The text has more of YAML in it."""


class _Line(NamedTuple):
    """An item of a list, a member of a mapping, or the first member of a mapping that is an item. `key` is ""
    for an item that is a scalar. `is_open`: the value stands in the lines below, or is null."""

    indent: int
    is_item: bool
    key: str
    value: Any
    is_open: bool


def read(text: str) -> Any | None:
    """The document; None if it is not written so."""
    meant = [line for line in text.removeprefix("---\n").split("\n") if line.lstrip(" ")[:1] not in ("", "#")]
    if not meant:
        return None
    try:
        lines = [_line(line) for line in meant]
        found, end = _block(lines, 0, 0)
    except _Unread:
        return None
    # No block takes a line that is indented as none of them is.
    return found if end == len(lines) else None


def _line(text: str) -> _Line:
    found = _LINE.fullmatch(text)
    if found is None:
        raise _Unread
    indent, dash, key, plain, double, single, empty = found.groups()
    value: Any = None
    if plain is not None:
        if plain.lower() in _NO_STRINGS and plain not in _VALUES:
            raise _Unread
        value = _VALUES.get(plain, plain)
    elif double is not None or single is not None:
        value = single if double is None else double
    elif empty:
        value = {} if empty == "{}" else []
    is_open = (plain, double, single, empty) == (None,) * 4
    if (key or "").lower() in _NO_STRINGS or (key is None and (is_open or not dash)):
        raise _Unread
    return _Line(len(indent), bool(dash), key or "", value, is_open)


def _block(lines: list[_Line], at: int, depth: int) -> tuple[Any, int]:
    """The list or mapping that begins at that line, and the line after it."""
    if depth > _DEEPEST:
        raise _Unread
    return (_items if lines[at].is_item else _members)(lines, at, depth)


def _items(lines: list[_Line], at: int, depth: int) -> tuple[list[Any], int]:
    indent, found = lines[at].indent, []
    while at < len(lines) and lines[at].indent == indent and lines[at].is_item:
        value, at = lines[at].value, at + 1
        if lines[at - 1].key:
            # What follows the dash is indented by it, too.
            lines[at - 1] = lines[at - 1]._replace(indent=indent + 2, is_item=False)
            value, at = _block(lines, at - 1, depth + 1)
        found.append(value)
    return found, at


def _members(lines: list[_Line], at: int, depth: int) -> tuple[dict[str, Any], int]:
    indent, found = lines[at].indent, {}
    while at < len(lines) and lines[at].indent == indent and not lines[at].is_item:
        line, at = lines[at], at + 1
        value: Any = line.value
        if line.key in found:
            raise _Unread
        if line.is_open and at < len(lines):
            below = lines[at]
            if below.indent > indent or (below.indent == indent and below.is_item):
                value, at = _block(lines, at, depth + 1)
        found[line.key] = value
    return found, at
