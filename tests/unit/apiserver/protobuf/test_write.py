"""What is written is what is read."""

from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.protobuf.wire import encode_bytes, encode_flag, encode_text, fields

numbers = st.integers(1, 2**20)


@given(numbers, st.binary(max_size=300))
def test_messages(number: int, payload: bytes) -> None:
    assert list(fields(encode_bytes(number, payload))) == [(number, payload)]


@given(numbers, st.text(min_size=1, max_size=50))
def test_text(number: int, value: str) -> None:
    assert list(fields(encode_text(number, value))) == [(number, value.encode())]


def test_what_is_empty_is_not_written() -> None:
    assert encode_text(1, "") == encode_flag(1, False) == b""
    assert list(fields(encode_flag(3, True))) == [(3, 1)]
