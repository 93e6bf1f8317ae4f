"""Text as Go quotes it, and plain data as Go prints it, for messages in its words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_ESCAPED = {letter: f"\\{name}" for letter, name in zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True)}


GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def go_type(value: Any) -> str:
    """As `%T` of Go shows plain data."""
    return GO_TYPES.get(type(value), "<nil>")


def go_value(value: Any) -> str:
    """As `%v` of Go shows plain data."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case list():
            return f"[{' '.join(map(go_value, value))}]"
        case dict():
            return f"map[{' '.join(f'{name}:{go_value(below)}' for name, below in sorted(value.items()))}]"
    return str(value)


def quoted(text: str) -> str:
    """As `%q` of Go shows a string."""
    # Nearly all that is quoted are names.
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_shown, text))}"'


def _shown(letter: str) -> str:
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted_list(texts: Iterable[str]) -> str:
    """As `%q` of Go shows a slice of strings: `["a" "b"]`."""
    return f"[{' '.join(map(quoted, texts))}]"


def printable(text: str) -> str:
    """Text of others as a terminal may show it: a character that would command it stands as `^X`, or as its
    number. Lines and tabs stay."""
    if text.isprintable():
        return text
    shown = []
    for one in text:
        if one.isprintable() or one in "\n\t":
            shown.append(one)
        else:
            code = ord(one)
            shown.append(f"^{chr(code ^ 0x40)}" if code < 0x20 or code == 0x7F else f"\\u{code:04x}")
    return "".join(shown)
