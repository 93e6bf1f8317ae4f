"""R-SYS-1: why Go cannot read something as a JSON object."""

from __future__ import annotations

import pytest

from podling.apiserver.kinds.config import fault_of_json_object


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", ""),
        (b' {"a": [1, 2.5, null]} ', ""),
        (b"null", ""),
        (b"", "unexpected end of JSON input"),
        (b'{"a": 1', "unexpected end of JSON input"),
        (b'{"a', "unexpected end of JSON input"),
        (b"x", "invalid character 'x' looking for beginning of value"),
        (b'{"a": }', "invalid character '}' looking for beginning of value"),
        (b"{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"{} {}", "invalid character '{' after top-level value"),
        (b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b'"a"', "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (b"1", "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (b"true", "json: cannot unmarshal bool into Go value of type map[string]interface {}"),
        (b"9" * 5000, "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (b"[" * 100_000, "exceeded max depth"),
    ],
)
def test_why(data: bytes, why: str) -> None:
    assert fault_of_json_object(data) == why
