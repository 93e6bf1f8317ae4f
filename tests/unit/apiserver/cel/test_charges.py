"""R-SYS-8: what expressions cost as they are evaluated, as kube-apiserver 1.36 was found to count;
`tests/peer/test_costs.py` asks it again, and about each function.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.cel.evaluation import Program, program
from podling.apiserver.cel.types import LIST, STRING, Type
from podling.apiserver.cel.values import OUT_OF_COST

COSTS = {
    "object.data.k": 3,
    "object.data.k == 'v'": 4,
    "'aaaaaaaaabaaaaaaaaabaaaaaaaaab'.startsWith('a')": 3,
    "'a'.startsWith('aaaaaaaaabaaaaaaaaab')": 1,
    "'abc'.matches('a')": 1,
    "matches('aaaaaaaaabaaaaaaaaab', 'b')": 1,
    "format.dns1123Label().validate('a')": 9,
    "format.uri().validate('https://a.b')": 553,
    "1 in [1, 2, 3]": 0,
    "object.data.k in []": 0,
    "1 in dyn([1, 2, 3])": 1,
    "20 in lists.range(10)": 31,
    "string(1)": 0,
    "object.data.k == 'v' ? object.data.k : 'b'": 6,
    "object.data[object.data.k]": 5,
    "{'a': object.data.k}.a": 35,
    "has(object.data.k)": 2,
    "object.data.?x.hasValue()": 3,
    "lists.range(10)": 21,
    "[3, 1, 2].sort()": 29,
    "dyn([3, 1, 2]).sort()": 1,
    "[[3], [1, 2]].flatten(2)": 15,
    "sets.equivalent([1, 2, 3], [1, 2])": 13,
    "['aaaaaaaaaaaaaaaaaaaaaab', 'aaaaaaaaab'].isSorted()": 3,
    "'a'.indexOf('a')": 0,
    "cidr('2001:db8::/32').containsCIDR('2001:db8::/64')": 7,
    "object.data.k + object.data.k": 7,
    "object.data.absent + 'x' + 'y' == 'z'": 6,
    "{'a': object.data.absent}": 33,
    "[1, 2, 3].map(x, x / 0)": 43,
    "optional.of(1).optFlatMap(x, optional.none()).hasValue()": 4,
}
REPEATED = (
    "{0}.startsWith('a')",
    "{0}.contains({0})",
    "{0}.matches('a+')",
    "{0}.replace('a', 'b')",
    "{0}.split('a')",
    "{0}.lowerAscii()",
    "{0} + {0}",
    "{0} == {0}",
    "{0} < {0}",
    "bytes({0})",
    "strings.quote({0})",
    "{0}.format([])",
    "{0}.indexOf('b')",
    "{0}.find('b')",
    "[{0}].join()",
    "isIP({0})",
    "isQuantity({0})",
    "ip.isCanonical({0}) || true",
    "format.labelValue().validate({0})",
    "1 in lists.range(size({0}))",
    "lists.range(size({0})).sum()",
    "lists.range(size({0})).sort()",
    "lists.range(size({0})).distinct()",
    "lists.range(size({0})).reverse()",
    "sets.contains(lists.range(size({0})), lists.range(size({0})))",
    "lists.range(size({0})).map(x, [x]).flatten()",
    "lists.range(size({0})).all(x, x >= 0)",
)


def cost(expression: str, **data: Any) -> int:
    return program(expression).evaluated({"object": {"data": {"k": "v", **data}}}).cost


@pytest.mark.parametrize(("expression", "expected"), COSTS.items(), ids=COSTS)
def test_a_cost(expression: str, expected: int) -> None:
    assert cost(expression) == expected


@pytest.mark.parametrize("expression", REPEATED)
@given(lengths=st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted))
def test_more_costs_no_less(expression: str, lengths: list[int]) -> None:
    text = expression.format("string(object.data.text)")
    less, more = (cost(text, text="a" * length) for length in lengths)
    assert less <= more


def test_a_variable_is_of_the_type_of_its_expression() -> None:
    names = {"variables": {"t": "a" * 100, "l": [1] * 50}}
    typed = (("t", STRING), ("l", Type(LIST, "", (STRING,))))
    for expression, unknown, known in (("variables.t + 'a'", 13, 13), ("variables.t + variables.t", 5, 24)):
        assert Program(expression).evaluated(names).cost == unknown
        assert Program(expression, typed).evaluated(names).cost == known


def test_what_costs_next_to_nothing_in_kubernetes_has_an_end() -> None:
    """There a text may be made of two for 1, and what is in lists is compared without a charge."""
    long, deep = "a" * 600_000, [[[0] * 300] * 300] * 300
    for expression in ("object.data.text + object.data.text", "object.data.deep == object.data.deep"):
        told = program(expression).evaluated({"object": {"data": {"text": long, "deep": deep}}})
        assert told.error == OUT_OF_COST
        assert told.cost < 100
    names = {"object": {"data": {"deep": [0] * 500_000}}}
    assert program("object.data.deep == object.data.deep").evaluated(names).value is True
