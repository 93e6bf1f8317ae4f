"""Field selectors: terms, escapes, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.errors import StatusError
from podling.model.selectors import FieldTerm, field_terms, parse_field_selector

FIELDS = {"metadata.name": "a", "status.phase": "Running", "spec.nodeName": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("metadata.name=a,status.phase!=Running", False),
        ("metadata.name=a,,status.phase=Running,", True),
    ],
)
def test_selects(text: str, selected: bool) -> None:
    assert parse_field_selector(text).matches(FIELDS.__getitem__) is selected


def test_an_exact_term_tells_its_value() -> None:
    selector = parse_field_selector("metadata.name=a,status.phase!=Failed")
    assert selector.exact("metadata.name") == "a"
    assert selector.exact("status.phase") is None


def test_escapes() -> None:
    assert list(field_terms(r"a=x\,y\=z\\")) == [FieldTerm("a", "x,y=z\\", True)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "invalid selector: 'nothing'; can't understand 'nothing'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_field_selector(text)
    assert (refused.value.code, refused.value.message) == (400, message)


@given(st.text(max_size=10))
def test_any_value_survives_escaping(value: str) -> None:
    escaped = "".join(f"\\{letter}" if letter in "\\,=" else letter for letter in value)
    assert list(field_terms(f"a={escaped},b=c")) == [FieldTerm("a", value, True), FieldTerm("b", "c", True)]


PAIRS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["=", "!="]), st.sampled_from("xyz")), max_size=5
)


@given(PAIRS, st.fixed_dictionaries({"a": st.sampled_from("xyz"), "b": st.sampled_from("xyz")}))
def test_all_terms_hold(terms: list[tuple[str, str, str]], fields: dict[str, str]) -> None:
    selector = parse_field_selector(",".join(map("".join, terms)))
    expected = all((fields[name] == value) == (how == "=") for name, how, value in terms)
    assert selector.matches(fields.__getitem__) == expected
