"""R-SYS-1: the continue token of a list."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.verbs.list import Continuation, decode_continue, encode_continue
from podling.model.errors import StatusError


@given(
    st.integers(1, 2**63 - 1) | st.none(),
    st.from_regex(r"[a-z0-9-]{1,20}(/[a-z0-9.-]{1,20})?", fullmatch=True),
)
def test_round_trip(revision: int | None, after: str) -> None:
    if ".." not in after.split("/"):
        continuation = Continuation(revision, after)
        assert decode_continue(encode_continue(continuation)) == continuation


@pytest.mark.parametrize(
    "token",
    [
        "!",
        "abc",
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b'{"v":"v2","rv":1,"start":"a\\u0000"}').decode(),
        base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":0,"start":"a\\u0000"}').decode(),
        base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"a"}').decode(),
        base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"../a\\u0000"}').decode(),
    ],
)
def test_a_forged_token_is_refused(token: str) -> None:
    with pytest.raises(StatusError) as raised:
        decode_continue(token)
    assert raised.value.code == 400


@given(st.binary(max_size=40))
def test_only_a_status_escapes(data: bytes) -> None:
    with pytest.raises(StatusError):
        decode_continue(base64.urlsafe_b64encode(b"x" + data).decode())
