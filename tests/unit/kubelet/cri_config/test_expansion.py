from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.cri_config.environment import expand, undefined

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
def test_references(text: str, expanded: str) -> None:
    """R-INIT-12"""
    assert expand(text, VALUES) == expanded


@given(st.text(alphabet="$AB x", max_size=30))
def test_without_references_only_double_dollars_change(text: str) -> None:
    assert expand(text, VALUES) == text.replace("$$", "$")


@given(st.text(alphabet="$()AB x", max_size=30))
def test_what_has_no_dollar_is_itself_and_expansion_never_fails(text: str) -> None:
    assert expand(text.replace("$", ""), VALUES) == text.replace("$", "")
    assert isinstance(expand(text, VALUES), str)


def test_names_without_a_value_are_told() -> None:
    assert undefined("$(A)/$(NONE)/$$(ESCAPED)/$()/plain", VALUES) == ["NONE", ""]
