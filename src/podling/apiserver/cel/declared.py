"""What a schema says of a value to expressions: its type, how great it may be, and how small it is when it is
written (`apiserver/pkg/cel/common/schemas.go` of Kubernetes).

What has no type has none here: a field of it is no field, and a list or a map of it is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from podling.apiserver.cel.costs import ITEMS, KEYS, VALUES, Path
from podling.apiserver.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, STRING, Type, list_of, map_of, struct
from podling.apiserver.cel.types import DURATION as DURATION_KIND
from podling.apiserver.cel.types import TIMESTAMP as TIMESTAMP_KIND

REQUEST_BYTES = 3 << 20
"""Of the greatest request."""
LONGEST_TEXT = REQUEST_BYTES - 2
BYTES_OF_CHARACTER = 4
LONGEST_TIME, LONGEST_SPAN, DATE = 37, 32, 12
"""Characters of a time, of a duration and of a date, as they are written."""
LONGEST_KEY = 0
"""What is known of the keys of maps."""
RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPED = {".": "__dot__", "/": "__slash__", "-": "__dash__", "__": "__underscores__"}
_TO_ESCAPE = re.compile(r"__|[./-]")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_./-]*")
TIMESTAMP, DURATION = Type(TIMESTAMP_KIND), Type(DURATION_KIND)
_TEXTS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_SCALARS = {"boolean": BOOL, "integer": INT, "number": DOUBLE, "int-or-string": DYN}


class Shape(NamedTuple):
    """What a schema says, whatever it is written in. `kind`: `array`, `object`, …; `int-or-string`. `items`:
    of an array, or the values of a map. `most`: maxLength, maxItems or maxProperties."""

    kind: str
    format: str = ""
    most: int | None = None
    items: Any = None
    fields: Mapping[str, Any] = {}
    required: frozenset[str] = frozenset()
    enum: tuple[Any, ...] = ()
    has_default: bool = False


ShapeOf = Callable[[Any], Shape]


class Declared:
    """A schema as expressions see it. What is inside is looked at when it is asked for."""

    def __init__(self, shape: Shape, shape_of: ShapeOf) -> None:
        self.shape, self._shape_of = shape, shape_of
        self._known: dict[str, Declared | None] = {}

    def _inside(self, schema: Any) -> Declared | None:
        return declared(self._shape_of(schema), self._shape_of)

    @cached_property
    def item(self) -> Declared | None:
        """Of a list or a map."""
        return None if self.shape.items is None else self._inside(self.shape.items)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Of the fields, by those under which expressions know them: one that is a word of the language by
        itself, too."""
        known = {known: name for name in self.shape.fields if (known := escaped(name))}
        return known | {name: name for name in RESERVED & self.shape.fields.keys()}

    def field(self, name: str) -> Declared | None:
        """By the name under which expressions know it."""
        if name not in self._known:
            own = self.names.get(name)
            self._known[name] = None if own is None else self._inside(self.shape.fields[own])
        return self._known[name]

    @cached_property
    def least_bytes(self) -> int:
        shape = self.shape
        if shape.kind == "object" and shape.items is None:
            size = 2
            for name in shape.required & shape.fields.keys():
                inner = self._inside(shape.fields[name])
                if inner is not None and not inner.shape.has_default:
                    size += len(name) + inner.least_bytes + 4
            return size
        if shape.kind == "string":
            return {"duration": 3, "date": DATE, "date-time": 21}.get(shape.format, 2)
        return {"boolean": 4, "array": 2, "object": 2}.get(shape.kind, 1)

    @cached_property
    def most(self) -> int:
        """Characters, items or entries; 0 of what has none."""
        shape = self.shape
        if shape.kind == "string":
            return self._longest()
        if shape.kind == "int-or-string":
            return LONGEST_TEXT
        if self.item is None:
            return 0
        if shape.most is not None:
            return max(0, shape.most)
        if shape.kind == "array":
            return LONGEST_TEXT // (self.item.least_bytes + 1)
        return LONGEST_TEXT // (self.item.least_bytes + 6)

    def _longest(self) -> int:
        shape = self.shape
        fixed = {"duration": LONGEST_SPAN, "date": DATE, "date-time": LONGEST_TIME}
        if shape.format in fixed:
            return fixed[shape.format]
        if shape.most is not None:
            return max(0, shape.most) * (1 if shape.format == "byte" else BYTES_OF_CHARACTER)
        if shape.enum and shape.format != "byte":
            return max(len(one.encode()) if isinstance(one, str) else 0 for one in shape.enum)
        return LONGEST_TEXT

    def type(self, name: str, known: dict[str, Declared]) -> Type:
        """Structures are called after `name`, and put into `known`."""
        shape = self.shape
        if self.item is not None:
            if shape.kind == "array":
                return list_of(self.item.type(f"{name}.@idx", known))
            return map_of(STRING, self.item.type(f"{name}.@elem", known))
        if shape.kind == "object":
            known[name] = self
            return struct(name)
        if shape.kind == "string":
            return _TEXTS.get(shape.format, STRING)
        return _SCALARS[shape.kind]


def declared(shape: Shape, shape_of: ShapeOf) -> Declared | None:
    """None if expressions cannot know the value."""
    inner = shape
    while inner.items is not None:
        inner = shape_of(inner.items)
    is_known = inner.kind in _SCALARS or inner.kind in ("string", "object")
    return Declared(shape, shape_of) if is_known else None


class Declarations:
    """The structures that are found in a schema, as `Structures` and as `Sizes`."""

    def __init__(self, root: Declared, name: str) -> None:
        self._root = root
        self._known: dict[str, Declared] = {}
        self.type = root.type(name, self._known)

    def has(self, name: str) -> bool:
        return name in self._known

    def field(self, name: str, field: str) -> Type | None:
        found = self._known[name].field(field)
        return None if found is None else found.type(f"{name}.{field}", self._known)

    def most_at(self, path: Path) -> int | None:
        """The first step of a path is a variable, whatever its name: all are taken for the root."""
        at: Declared | None = self._root
        for step in path[1:]:
            if at is None:
                return None
            if step == KEYS and at.shape.kind == "object" and at.item is not None:
                return LONGEST_KEY
            at = at.item if step in (ITEMS, VALUES) else at.field(step)
        return None if at is None else at.most


def escaped(name: str) -> str:
    """The name of a field in expressions, empty if they cannot name it."""
    if not _NAME.fullmatch(name):
        return ""
    if name in RESERVED:
        return f"__{name}__"
    return _TO_ESCAPE.sub(lambda found: _ESCAPED[found[0]], name)
