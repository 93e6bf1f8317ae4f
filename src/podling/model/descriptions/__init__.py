"""What types and fields mean, in a sentence or two each: shown by `kubectl explain`, published as OpenAPI.

The sentences are in the text files beside this one, by area. They are read when the first is asked for: most
podlings are never asked. In a file a line at the margin is a type, an indented one a field by its name on the
wire; `EphemeralContainer (Container)` has the fields of Container as well, and the type `*` those that every
type has. A line that begins with `#` is for those who read the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

EVERY = "*"
_LINE = re.compile(r"(?P<margin> *)(?P<name>[\w*]+)(?: \((?P<base>\w+)\))?:(?: (?P<text>.+))?")


class Description(NamedTuple):
    """Of a type: what it is, what its fields are by wire name, and the type it has further fields of."""

    text: str
    fields: dict[str, str]
    base: str


def describe_type(name: str) -> str:
    """Empty when it is not described."""
    known = descriptions().get(name)
    return known.text if known else ""


def describe_field(type_name: str, wire: str) -> str:
    """What the type says of the field, else what every type does. Empty when it is not described."""
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
