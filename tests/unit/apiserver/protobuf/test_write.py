"""What is written is what is read."""

from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.protobuf.wire import fields
from podling.apiserver.protobuf.write import flag, message, text

numbers = st.integers(1, 2**20)


@given(numbers, st.binary(max_size=300))
def test_messages(number: int, payload: bytes) -> None:
    assert list(fields(message(number, payload))) == [(number, payload)]


@given(numbers, st.text(min_size=1, max_size=50))
def test_text(number: int, value: str) -> None:
    assert list(fields(text(number, value))) == [(number, value.encode())]


def test_what_is_empty_is_not_written() -> None:
    assert text(1, "") == flag(1, False) == b""
    assert list(fields(flag(3, True))) == [(3, 1)]
