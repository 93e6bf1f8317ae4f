"""R-SYS-8: JSONPaths are taken and refused as by kubectl's parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.rules.json_path import fault_of_json_path


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("spec.validations[0].expression", ""),
        (".items[?(@.a=='b')].c..d", ""),
        ("['a','b'][1:-1:2][*]", ""),
        ("a} text {b", ""),
        ("1a", ""),
        ("10.0.0.9", "cannot parse number 10.0.0.9"),
        ("'a", "unterminated quoted string"),
        ("'\\q'", "unquote string '\\q' error invalid syntax"),
        ("a[0", "unterminated array"),
        ("a[b]", "invalid array index b"),
        ("a[99999999999999999999]", "array index 99999999999999999999 is not a number"),
        ("[?(a]", "unterminated filter"),
        ("[?(a)b", "unclosed array expect ]"),
        ("....a", "invalid multiple recursive descent"),
        ("a\nb", "unclosed action"),
        ("#", "unrecognized character in action: U+0023 '#'"),
        ("a\tb", "unrecognized character in action: U+0009"),
    ],
)
def test_paths(path: str, fault: str) -> None:
    assert fault_of_json_path(path) == fault


@given(st.text("a0.[]?()*'\"\\{}:,-@$ \n=", max_size=40))
def test_any_text_is_taken_or_refused(path: str) -> None:
    assert isinstance(fault_of_json_path(path), str)
