"""Whole numbers in text, as Go reads them."""

from __future__ import annotations

from podling.model.codec.quoting import quoted

MOST_DIGITS = 19
"""Of a number of 64 bits."""


def parse_int64(text: str) -> int:
    """Raises ValueError, in Go's words."""
    digits = text[1:] if text.startswith(("+", "-")) else text
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    # What is longer Python might even refuse to read.
    if len(digits.lstrip("0")) > MOST_DIGITS or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return int(text)


def parse_uint16(text: str) -> int:
    """Raises ValueError, in Go's words."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax")
    if len(text.lstrip("0")) > MOST_DIGITS or int(text) >= 1 << 16:
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)
