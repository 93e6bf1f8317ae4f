"""Numbers of YAML are those that Kubernetes' reader of it finds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from podling.model.codec.yaml import CLoader, PythonLoader


@pytest.mark.parametrize("loader", [CLoader, PythonLoader])
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1e2", 100), ("1.0", 1), ("-0.5", -0.5), ("5.", 5), (".5", 0.5), ("010", 8), ("0o17", 15), ("08", 8),
        ("0x10", 16), ("-0b11", -3), ("+1", 1), ("1_000", 1000), ("18446744073709551615", (1 << 64) - 1),
        ("18446744073709551616", 18446744073709552000), ("1e30", 1e30), ("1e400", "1e400"),
        ("1:30", "1:30"), ("1e", "1e"), ("2026-01-02", "2026-01-02"), ("10.0.0.1", "10.0.0.1"),
        ("9" * 500, "9" * 500), ("'1'", "1"),
    ],
)  # fmt: skip
def test_numbers(text: str, read: Any, loader: Any) -> None:
    found = yaml.load(text, loader)
    assert (type(found), found) == (type(read), read)


@pytest.mark.parametrize("loader", [CLoader, PythonLoader])
def test_truths(loader: Any) -> None:
    """As Kubernetes' reader has them; as keys they are text."""
    found = yaml.load("{a: y, b: N, c: on, d: 'y', e: yy, n: 1, yes: 2, 'no': 3}", loader)
    assert found == {"a": True, "b": False, "c": True, "d": "y", "e": "yy", "false": 1, "true": 2, "no": 3}


@pytest.mark.parametrize("text", [".nan", ".inf", "-.Inf"])
def test_what_json_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="unsupported value"):
        yaml.load(text, CLoader)
