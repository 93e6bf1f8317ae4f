"""Field selectors: `status.phase!=Running,spec.nodeName=a`. Each kind says which fields it has."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from podling.model.errors import bad_request


class FieldTerm(msgspec.Struct, frozen=True):
    field: str
    value: str
    equal: bool


class FieldSelector(msgspec.Struct, frozen=True):
    """All terms must hold; without terms it selects everything."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """`value_of` reads a field by its name in the selector."""
        return all((value_of(term.field) == term.value) == term.equal for term in self.terms)

    def exact(self, field: str) -> str | None:
        """The value that `field` must have, if the selector says one."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse(text: str) -> FieldSelector:
    """Terms `field=value`, `field==value`, `field!=value`, joined by commas; `\\` escapes `\\ , =` in values.

    Raises StatusError 400.
    """
    return FieldSelector(tuple(_term(part, text) for part in _split(text) if part))


def escaped(value: str) -> str:
    """`value` as it stands in a selector."""
    return "".join(f"\\{letter}" if letter in "\\,=" else letter for letter in value)


def _split(text: str) -> list[str]:
    parts, escaped = [""], False
    for letter in text:
        if letter == "," and not escaped:
            parts.append("")
            continue
        parts[-1] += letter
        escaped = letter == "\\" and not escaped
    return parts


def _term(part: str, text: str) -> FieldTerm:
    for at in range(len(part)):
        operator = next((o for o in ("!=", "==", "=") if part.startswith(o, at)), "")
        if operator:
            return FieldTerm(part[:at], _unescaped(part[at + len(operator) :]), operator != "!=")
    raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescaped(value: str) -> str:
    plain, escaped = "", False
    for letter in value:
        if escaped and letter not in "\\,=":
            raise bad_request(f"invalid field selector: invalid escape sequence: \\{letter}")
        if not escaped and letter == "=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(letter)}")
        escaped = letter == "\\" and not escaped
        plain += "" if escaped else letter
    if escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return plain
