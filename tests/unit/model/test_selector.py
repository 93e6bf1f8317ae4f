"""Label selectors select what Kubernetes' do and are refused in its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.errors import StatusError
from podling.model.selectors import EVERYTHING, NOTHING, from_label_selector, parse_label_selector
from podling.model.types.meta import LabelSelector, LabelSelectorRequirement

WEB = {"app": "web", "tier": "front", "size": "10"}

SELECTED = [
    ("", True),
    ("app=web", True),
    ("app==web", True),
    ("app=db", False),
    ("app!=web", False),
    ("absent!=web", True),
    ("app", True),
    ("absent", False),
    ("!app", False),
    ("! absent", True),
    ("app in (web, db)", True),
    ("app in(db)", False),
    ("app notin (db,)", True),
    ("absent notin (web)", True),
    ("absent in (web)", False),
    ("app=web,tier=front", True),
    ("app=web , tier=back", False),
    ("size>9", True),
    ("size<10", False),
    ("tier>1", False),
    ("absent>1", False),
    ("app=", False),
    ("absent=", False),
]


@pytest.mark.parametrize(("text", "selected"), SELECTED)
def test_selects(text: str, selected: bool) -> None:
    assert parse_label_selector(text).matches(WEB) is selected


REFUSED = {
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    ",": "found ',', expected: !, identifier, or 'end of string'",
    "a,": "found '', expected: identifier after ','",
    "a,,b": "found ',', expected: identifier after ','",
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a in": "unable to parse requirement: found '' expected: '('",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "a=(": "unable to parse requirement: found '(', expected: identifier",
    "!": "unable to parse requirement: found '', expected: identifier",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_a_malformed_selector_is_a_bad_request(text: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_label_selector(text)
    assert (refused.value.code, refused.value.message) == (400, message)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("-a=b", '<nil>: Invalid value: "-a": name part must consist of'),
        ("a=-", 'values[0][a]: Invalid value: "-": a valid label must be'),
        ("a>x", "the value must be an integer"),
    ],
)
def test_keys_and_values_are_judged_as_labels(text: str, part: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_label_selector(text)
    assert refused.value.message.startswith("unable to parse requirement: ")
    assert part in refused.value.message


def test_nothing_between_brackets_is_the_empty_value() -> None:
    selector = parse_label_selector("a in ()")
    assert selector.matches({"a": ""})
    assert not selector.matches({"a": "b"})


def test_a_selector_of_everything_is_false_so_that_nobody_asks_it() -> None:
    assert not parse_label_selector("")
    assert parse_label_selector("a")
    assert NOTHING
    assert not NOTHING.matches(WEB)
    assert EVERYTHING.matches({})


def test_label_selector_none_selects_nothing_and_empty_everything() -> None:
    assert from_label_selector(None) == NOTHING
    assert from_label_selector(LabelSelector()) == EVERYTHING


@pytest.mark.parametrize(
    ("operator", "values", "selected"),
    [
        ("In", ["web"], True),
        ("NotIn", ["web"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_match_expressions(operator: str, values: list[str], selected: bool) -> None:
    expression = LabelSelectorRequirement(key="app", operator=operator, values=values)
    selector = LabelSelector(match_labels={"tier": "front"}, match_expressions=[expression])
    assert from_label_selector(selector).matches(WEB) is selected


def test_match_expressions_refuse_an_unknown_operator_and_misplaced_values() -> None:
    for operator, values in (("Near", ["a"]), ("In", []), ("Exists", ["a"])):
        requirement = LabelSelectorRequirement(key="app", operator=operator, values=values)
        with pytest.raises(ValueError, match=r"label selector operator|values"):
            from_label_selector(LabelSelector(match_expressions=[requirement]))


words = st.from_regex(r"[a-c]([-a-c]{0,2}[a-c])?", fullmatch=True)
labels = st.dictionaries(words, words, max_size=3)


@given(labels, words, st.sets(words, min_size=1, max_size=3))
def test_in_and_notin_are_opposites_and_mean_membership(
    labels: dict[str, str], key: str, values: set[str]
) -> None:
    listed = ",".join(values)
    chosen = parse_label_selector(f"{key} in ({listed})").matches(labels)
    assert chosen == (labels.get(key) in values)
    assert parse_label_selector(f"{key} notin ({listed})").matches(labels) != chosen


@given(labels)
def test_labels_select_themselves(labels: dict[str, str]) -> None:
    text = ",".join(f"{key}={value}" for key, value in labels.items())
    assert parse_label_selector(text).matches(labels)
    assert parse_label_selector(text).matches({**labels, "more": "x"})
    assert from_label_selector(LabelSelector(match_labels=labels)).matches(labels)


@given(st.text(alphabet="ab=!(),<> in", max_size=15))
def test_only_status_errors_escape(text: str) -> None:
    try:
        parse_label_selector(text)
    except StatusError as error:
        assert error.code == 400


asked = st.lists(
    st.one_of(
        st.tuples(words, st.sampled_from(["={}", "!={}", " in ({},a)", " notin ({},a)"]), words),
        st.tuples(words, st.sampled_from([">{}", "<{}"]), st.sampled_from(["1", "2", "10"])),
        st.tuples(words, st.just(""), st.just("")),
        st.tuples(words.map("!{}".format), st.just(""), st.just("")),
    ),
    max_size=6,
)


@given(asked, st.dictionaries(words, words | st.sampled_from(["1", "2", "3"]), max_size=3))
def test_sorted_for_many_it_selects_the_same(
    terms: list[tuple[str, str, str]], labels: dict[str, str]
) -> None:
    """All terms together select what each of them selects."""
    texts = [key + rest.format(value) for key, rest, value in terms]
    each = [parse_label_selector(text).matches(labels) for text in texts]
    assert parse_label_selector(",".join(texts)).matches(labels) == all(each)
