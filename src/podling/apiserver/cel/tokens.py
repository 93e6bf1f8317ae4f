"""The tokens of an expression, and what is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEX, _POWER = "[0-9a-fA-F]", "[eE][+-]?[0-9]+"
_ESCAPE = rf"\\(?:[abfnrtv\"'\\?`]|[xX]{_HEX}{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}}|[0-3][0-7]{{2}})"
_NO_ESCAPE = rf"\\(?:[xX]{_HEX}?|u{_HEX}{{0,3}}|U{_HEX}{{0,7}}|[0-3][0-7]?)?"
"""As far as it could be one."""
# Atomic, in place of possessive: Python 3.11.2, which Debian has, goes on behind what a possessive group has
# tried in vain.
_QUOTED = "|".join(
    rf"{quote * 3}(?:{_ESCAPE}|[^\\])*?{quote * 3}|{quote}(?>(?:{_ESCAPE}|[^\\\n\r{quote}])*){quote}"
    for quote in "'\""
)
_RAW = "|".join(f"[rR](?:{quote * 3}.*?{quote * 3}|{quote}[^\n\r{quote}]*+{quote})" for quote in "'\"")
_OPEN = "|".join(rf"{quote}(?>(?:{_ESCAPE}|[^\\\n\r{quote}])*)(?:{_NO_ESCAPE})?" for quote in "'\"")
"""What nothing closes."""
_TOKEN = re.compile(
    r"(?P<WHITESPACE>[\t \r\n\f]+)"
    r"|(?P<COMMENT>//[^\n]*)"
    rf"|(?P<BYTES>[bB](?:{_QUOTED}|{_RAW}))"
    rf"|(?P<STRING>{_QUOTED}|{_RAW})"
    rf"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:{_POWER})?|[0-9]+{_POWER}|\.[0-9]+(?:{_POWER})?)"
    rf"|(?P<NUM_UINT>(?:0x{_HEX}+|[0-9]+)[uU])"
    rf"|(?P<NUM_INT>0x{_HEX}+|[0-9]+)"
    r"|(?P<SIGN>(?:in|true|false|null)\b|&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_./ -]+`)"
    # What is none, with the letter that made it none.
    rf"|(?:{_OPEN}|`[A-Za-z0-9_./ -]*+|[&|=])?.?",
    re.DOTALL | re.ASCII,
)


class Token(NamedTuple):
    """`sort`: as the grammar calls it, `SIGN` for what stands for itself, empty for what is none."""

    sort: str
    text: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """One after the other, also what separates them."""
    return (
        Token(found.lastgroup or "", found[0], found.start(), found.end())
        for found in _TOKEN.finditer(text)
        if found[0]
    )
