"""The wire format of protobuf: whole, cut short, and random."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.protobuf.wire import WireError, encode_bytes, encode_varint, fields


def field(number: int, value: int | bytes) -> bytes:
    return (
        encode_varint(number << 3) + encode_varint(value)
        if isinstance(value, int)
        else encode_bytes(number, value)
    )


VALUES = st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=200))


@given(st.lists(st.tuples(st.integers(1, 2**20), VALUES), max_size=8))
def test_round_trip(sent: list[tuple[int, int | bytes]]) -> None:
    assert list(fields(b"".join(field(number, value) for number, value in sent))) == sent


@given(st.lists(st.tuples(st.integers(1, 20), VALUES), min_size=1, max_size=3), st.data())
def test_a_message_cut_short(sent: list[tuple[int, int | bytes]], data: st.DataObject) -> None:
    *whole, last = [field(number, value) for number, value in sent]
    cut = data.draw(st.integers(1, len(last) - 1))
    with pytest.raises(WireError):
        list(fields(b"".join(whole) + last[:cut]))


@given(st.binary(max_size=60))
def test_only_a_wire_error_escapes(data: bytes) -> None:
    with suppress(WireError):
        list(fields(data))


def test_fixed_sizes_are_read_as_bytes() -> None:
    assert list(fields(b"\x09" + b"x" * 8 + b"\x0d" + b"y" * 4)) == [(1, b"x" * 8), (1, b"y" * 4)]


@pytest.mark.parametrize("data", [b"\x00\x00", b"\x03", b"\x08" + b"\xff" * 10])
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(WireError):
        list(fields(data))
