"""R-SYS-1: a method that HTTP does not know is refused by its path, as by Kubernetes."""

from __future__ import annotations

import pytest

from podling.apiserver.http.connections import UNSERVED_METHOD, readable


@pytest.mark.parametrize("method", [b"GET", b"PATCH", b"OPTIONS"])
def test_a_known_method_is_left_as_it_is(method: bytes) -> None:
    assert readable(method + b" /api HTTP/1.1\r\n\r\n") == method + b" /api HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("method", [b"BREW", b"get", b"X-RAY"])
def test_an_unknown_method_is_one_that_nobody_serves(method: bytes) -> None:
    assert readable(method + b" /api HTTP/1.1\r\n\r\n") == UNSERVED_METHOD + b" /api HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01 /", b"BR", b"A" * 40 + b" /", b"{} /"])
def test_what_is_no_request_is_left_to_the_parser(data: bytes) -> None:
    assert readable(data) == data


@pytest.mark.parametrize("data", [b"T /api HTTP/1.1", b"ATCH /api HTTP/1.1", b"LETE /api HTTP/1.1"])
def test_a_method_may_have_begun_with_the_request_before(data: bytes) -> None:
    assert readable(data, may_go_on=True) == data
    assert readable(data).startswith(UNSERVED_METHOD)
