"""Text as Go quotes it, for messages in its words."""

from __future__ import annotations

from collections.abc import Iterable

_ESCAPED = {letter: f"\\{name}" for letter, name in zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True)}


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
