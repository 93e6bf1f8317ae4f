from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.expansion import expand

VALUES = {"A": "1", "B": "$(A)", "EMPTY": ""}

CASES = [
    ("plain", "plain"),
    ("$(A)", "1"),
    ("$(A)$(A)", "11"),
    ("$(B)", "$(A)"),
    ("$(EMPTY)", ""),
    ("$(NONE)", "$(NONE)"),
    ("$$(A)", "$(A)"),
    ("$$$(A)", "$1"),
    ("$A ${A}", "$A ${A}"),
    ("$(A", "$(A"),
    ("$", "$"),
    ("$()", "$()"),
]


@pytest.mark.parametrize(("text", "expanded"), CASES)
def test_references(text, expanded):
    """R-INIT-12"""
    assert expand(text, VALUES) == expanded


@given(st.text(alphabet="$()AB x", max_size=30))
def test_without_values_only_double_dollars_change(text):
    assert expand(text, {}) == text.replace("$$", "$")
