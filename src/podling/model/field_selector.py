"""Field selectors: `status.phase!=Running,spec.nodeName=a`. Each kind says which fields it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from podling.model.errors import bad_request

_PARTS = re.compile(r"(?:[^\\,]++|\\.?)*+", re.DOTALL)
_OPERATOR = re.compile("!=|==?")
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_MISPLACED = re.compile(r"\\(?P<escape>[^\\,=]|$)|\\.|(?P<bare>=)", re.DOTALL)


class FieldTerm(msgspec.Struct, frozen=True):
    field: str
    value: str
    equal: bool


class FieldSelector(msgspec.Struct, frozen=True):
    """All terms must hold; without terms it selects everything."""

    terms: tuple[FieldTerm, ...] = ()
    values: Mapping[tuple[str, bool], AbstractSet[str]] = {}
    """The same by field and whether it is to be equal: thousands of terms about one field are one look-up for
    each object."""

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """`value_of` reads a field by its name in the selector."""
        return all(
            len(values) == 1 and value_of(field) in values if equal else value_of(field) not in values
            for (field, equal), values in self.values.items()
        )

    def exact(self, field: str) -> str | None:
        """The value that `field` must have, if the selector says one."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse(text: str) -> FieldSelector:
    """Terms `field=value`, `field==value`, `field!=value`, joined by commas; `\\` escapes `\\ , =` in values.

    Raises StatusError 400.
    """
    terms = tuple(_term(part, text) for part in _PARTS.findall(text) if part)
    values: dict[tuple[str, bool], set[str]] = {}
    for term in terms:
        values.setdefault((term.field, term.equal), set()).add(term.value)
    return FieldSelector(terms, values)


def escaped(value: str) -> str:
    """`value` as it stands in a selector."""
    return "".join(f"\\{letter}" if letter in "\\,=" else letter for letter in value)


def _term(part: str, text: str) -> FieldTerm:
    operator = _OPERATOR.search(part)
    if operator is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    return FieldTerm(part[: operator.start()], _unescaped(part[operator.end() :]), operator[0] != "!=")


def _unescaped(value: str) -> str:
    for fault in _MISPLACED.finditer(value):
        if fault["bare"]:
            raise bad_request(f"invalid field selector: unescaped character in value: {ord('=')}")
        if fault["escape"] is not None:
            raise bad_request(f"invalid field selector: invalid escape sequence: {fault[0]}")
    return _ESCAPED.sub(r"\1", value)
