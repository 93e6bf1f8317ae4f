"""Numbers in text are read as Go reads them, however long they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from podling.model.integers import parse_int64, parse_uint

LONG = 10_000
"""Digits that Python by itself does not read."""


@pytest.mark.parametrize(
    ("read", "text", "number"),
    [
        (parse_int64, "-9223372036854775808", -(1 << 63)),
        (parse_int64, "+7", 7),
        (parse_int64, f"-{'0' * LONG}7", -7),
        (parse_uint, "18446744073709551615", (1 << 64) - 1),
        (parse_uint, "0" * LONG, 0),
        (partial(parse_uint, bits=16), "65535", 65535),
    ],
)
def test_a_number(read: Callable[[str], int], text: str, number: int) -> None:
    assert read(text) == number


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        (parse_int64, "", 'strconv.ParseInt: parsing "": invalid syntax'),
        (parse_int64, "-", 'strconv.ParseInt: parsing "-": invalid syntax'),
        (parse_int64, "9223372036854775808", "value out of range"),
        (parse_int64, "9" * LONG, "value out of range"),
        (parse_uint, "+1", 'strconv.ParseUint: parsing "\\+1": invalid syntax'),
        (parse_uint, "18446744073709551616", "value out of range"),
        (partial(parse_uint, bits=16), "65536", "value out of range"),
    ],
)
def test_what_is_none(read: Callable[[str], int], text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(text)
