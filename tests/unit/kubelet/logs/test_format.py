"""The CRI log format, line by line and in any pieces."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.logs.format import (
    LogFormatter,
    LogOptions,
    fixed_width,
    nanoseconds,
    parse_line,
    tail_offset,
)

LOG = (
    b"2016-10-06T00:17:09.669794202Z stdout F one\n"
    b"2016-10-06T00:17:10.1Z stderr F bad\n"
    b"2016-10-06T00:17:11Z stdout P two and \n"
    b"2016-10-06T00:17:12Z stdout F a half\n"
)


def shown(log: bytes, **options: Any) -> bytes:
    formatter = LogFormatter(LogOptions(**options))
    return formatter.feed(log) + formatter.end()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, b"one\nbad\ntwo and a half\n"),
        ({"stream": b"stderr"}, b"bad\n"),
        ({"limit_bytes": 6}, b"one\nba"),
        ({"limit_bytes": 0}, b""),
        ({"since": 1475713030 * 10**9}, b"bad\ntwo and a half\n"),
        ({"since": 1475713030 * 10**9 + 100_000_001}, b"two and a half\n"),
        (
            {"timestamps": True},
            b"2016-10-06T00:17:09.669794202Z one\n"
            b"2016-10-06T00:17:10.100000000Z bad\n"
            b"2016-10-06T00:17:11.000000000Z two and a half\n",
        ),
    ],
)
def test_what_is_shown(options: dict[str, Any], expected: bytes) -> None:
    assert shown(LOG, **options) == expected


def test_a_last_line_without_its_end_is_shown_as_far_as_it_is_there() -> None:
    assert shown(b"2016-10-06T00:17:09Z stdout F hal") == b"hal"


@pytest.mark.parametrize("line", [b"", b"garbage", b"t stdout X c", b"t stdin F c", b"t stdout F"])
def test_what_is_no_line_is_passed_over(line: bytes) -> None:
    assert parse_line(line) is None
    assert shown(line + b"\n") == b""


def test_carriage_returns_and_spaces_are_content() -> None:
    assert shown(b"2016-10-06T00:17:09Z stdout F  a\r b \n") == b" a\r b \n"


def test_other_time_zones() -> None:
    assert fixed_width(b"2016-10-06T02:17:09.5+02:00") == b"2016-10-06T02:17:09.500000000+02:00"
    assert nanoseconds(b"2016-10-06T02:17:09.5+02:00") == 1475713029_500000000
    assert nanoseconds(b"yesterday") is None


@given(st.lists(st.integers(0, 30), max_size=12))
def test_pieces_make_no_difference(cuts: list[int]) -> None:
    formatter, out, at = LogFormatter(LogOptions(timestamps=True)), b"", 0
    for cut in cuts:
        out += formatter.feed(LOG[at : at + cut])
        at += cut
    assert out + formatter.feed(LOG[at:]) == shown(LOG, timestamps=True)


@given(st.binary(max_size=120))
def test_random_bytes_are_survived(log: bytes) -> None:
    shown(log, timestamps=True, since=1)


@given(
    st.lists(st.binary(max_size=9).filter(lambda line: b"\n" not in line), max_size=40), st.integers(0, 50)
)
def test_the_tail_is_the_last_lines(lines: list[bytes], count: int) -> None:
    log = b"".join(line + b"\n" for line in lines)
    expected = b"".join(line + b"\n" for line in lines[len(lines) - min(count, len(lines)) :])
    assert log[tail_offset(io.BytesIO(log), count) :] == expected


def test_a_tail_over_many_blocks() -> None:
    lines = [b"%d " % number + b"x" * 100 for number in range(5000)]
    log = b"\n".join(lines) + b"\n"
    assert log[tail_offset(io.BytesIO(log), 4000) :].startswith(b"1000 x")


def test_a_line_in_progress_counts_as_the_last() -> None:
    log = b"one\ntwo\nthr"
    assert log[tail_offset(io.BytesIO(log), 2) :] == b"two\nthr"
