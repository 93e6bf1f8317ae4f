"""How Go shows plain data."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.apply.configuration import go_syntax
from podling.model.codec.quoting import go_type


@pytest.mark.parametrize(
    ("value", "type_", "syntax"),
    [
        (1, "int64", "1"),
        (True, "bool", "true"),
        (1.5, "float64", "1.5"),
        ('a"b', "string", '"a\\"b"'),
        (None, "<nil>", "interface {}(nil)"),
        ([], "[]interface {}", "[]interface {}{}"),
        ({"b": [1, "x"], "a": None}, "map[string]interface {}",
         'map[string]interface {}{"a":interface {}(nil), "b":[]interface {}{1, "x"}}'),
    ],
)  # fmt: skip
def test_values(value: Any, type_: str, syntax: str) -> None:
    assert (go_type(value), go_syntax(value)) == (type_, syntax)
