"""Descriptions of types and fields, for `kubectl explain` and the published OpenAPI.

The text files beside this one have the sentences, a file for each area. They are read when the first is asked
for, because most podlings never are. A line at the margin is a type; an indented line is one of its fields by
wire name. `EphemeralContainer (Container)` also has the fields of Container; the type `*` has the fields that
every type has. A line that begins with `#` is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

EVERY = "*"
_LINE = re.compile(r"(?P<margin> *)(?P<name>[\w*$-]+)(?: \((?P<base>\w+)\))?:(?: (?P<text>.+))?")


class Description(NamedTuple):
    """A type: its text, its fields' texts by wire name, and the type whose fields it has as well ("" for
    none)."""

    text: str
    fields: dict[str, str]
    base: str


def describe_type(name: str) -> str:
    """The type's text; empty when it is not described."""
    known = descriptions().get(name)
    return known.text if known else ""


def describe_field(type_name: str, wire: str) -> str:
    """The field's text from the type, its base, or `*`. Empty when it is not described."""
    known = descriptions()
    while type_name in known:
        if wire in known[type_name].fields:
            return known[type_name].fields[wire]
        type_name = known[type_name].base
    return known[EVERY].fields.get(wire, "")


@cache
def descriptions() -> Mapping[str, Description]:
    """All types that are described, by name."""
    here = files(__name__)
    return {
        name: described
        for file in sorted(here.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".txt")
        for name, described in _read(file.read_text(encoding="utf-8"))
    }


def _read(text: str) -> Iterator[tuple[str, Description]]:
    """Raises ValueError for a line that is neither type nor field."""
    current = Description("", {}, "")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"neither a type nor a field: {line}")
        if found["margin"]:
            current.fields[found["name"]] = found["text"]
        else:
            current = Description(found["text"] or "", {}, found["base"] or "")
            yield found["name"], current
