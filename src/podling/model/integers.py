"""Whole numbers in text, as Go reads them."""

from __future__ import annotations

from podling.model.codec.quoting import quoted

LONGEST = 20
"""Digits of a number of 64 bits. What is longer Python might even refuse to read."""


def parse_int64(text: str) -> int:
    """Raises ValueError, in Go's words."""
    sign, digits = (text[0], text[1:]) if text.startswith(("+", "-")) else ("", text)
    number = _read(digits, text, "ParseInt")
    number = -number if sign == "-" else number
    if not -(1 << 63) <= number < 1 << 63:
        raise _out_of_range(text, "ParseInt")
    return number


def parse_uint(text: str, bits: int = 64) -> int:
    """Raises ValueError, in Go's words."""
    number = _read(text, text, "ParseUint")
    if number >= 1 << bits:
        raise _out_of_range(text, "ParseUint")
    return number


def _read(digits: str, text: str, reader: str) -> int:
    """Raises ValueError."""
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"strconv.{reader}: parsing {quoted(text)}: invalid syntax")
    said = digits.lstrip("0")
    if len(said) > LONGEST:
        raise _out_of_range(text, reader)
    return int(said or "0")


def _out_of_range(text: str, reader: str) -> ValueError:
    return ValueError(f"strconv.{reader}: parsing {quoted(text)}: value out of range")
