"""Expressions are evaluated as Kubernetes evaluates them, and within a bound.

What is expected here was answered by kube-apiserver 1.36; `tests/peer/test_policies.py` asks it again, and
about many more.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podling.apiserver.cel.authorizer import AccessDecision, Asker, ResourceCheck
from podling.apiserver.cel.evaluation import LIMIT, QUICK, Cut, Program, program
from podling.apiserver.cel.strings import format
from podling.apiserver.cel.values import OUT_OF_COST, CelError, Meter, type_of
from podling.apiserver.request.request import RequestInfo, User

OBJECT = {
    "kind": "ConfigMap",
    "metadata": {"name": "obj", "labels": {"a": "b", "x-y": "z"}},
    "data": {"k": "v", "n": "12"},
}
ASKED: list[tuple[str, RequestInfo]] = []
LONG = "lists.range(1000).all(x, lists.range(1000).all(y, true))"
VALUES = {
    "optional.none()[?1 / 0].hasValue()": "bool false",
    "object.data.k == 1": "bool false",
    "object.data.k > object.data.n": "bool true",
    "int(object.data.n)": "int 12",
    "dyn(1) == dyn(1u)": "bool true",
    "dyn(ip('10.0.0.1')) != dyn(1)": "bool true",
    "[ip('10.0.0.1')] == [dyn(1)]": "bool true",
    "dyn(quantity('1')) in [1]": "bool false",
    "[dyn(ip('10.0.0.1')), dyn(1)].distinct().size()": "int 2",
    "5 / -2": "int -2",
    r"r'\' + r'a\\\' + '\''": r"string \a\\\'",
    r"string(br'\') == R'\' && r'\\' == '\\\\'": "bool true",
    "-5 % 3": "int -2",
    "1.0 / 0.0": "double +Inf",
    "string(1234567.0)": "string 1.234567e+06",
    "string(timestamp('2020-01-01T10:00:00+02:00'))": "string 2020-01-01T10:00:00+02:00",
    "string(duration('1h30m'))": "string 5400s",
    "timestamp('2020-01-01T10:00:00Z').getHours('America/New_York')": "int 5",
    "[1, 2, 3].exists(x, 1 / (x - 2) > 0)": "bool true",
    "1 / 0 == 1 || true": "bool true",
    "{'a': 1, 'b': 2}.transformMap(k, v, v + 1)": 'map {"a":2, "b":3}',
    "[3, 1, 2].sortBy(x, -x)": "list [3, 2, 1]",
    "object.?metadata.?nope.orValue('d')": "string d",
    "object.?nope.a.b.hasValue()": "bool false",
    "[1, 2][?5].hasValue()": "bool false",
    "'hello'.replace('', '-', 2)": "string -h-ello",
    "'abc'.split('', 2)": 'list ["a", "bc"]',
    "'1 22 333'.findAll('[0-9]+', 2)": 'list ["1", "22"]',
    "'%s %d %s'.format(['a', 1, [1.5, 'x']])": 'string a 1 [1.500000, "x"]',
    "'%.3f %e'.format([3.14159, 12345.678])": "string 3.142 1.234568\u00d710⁰⁴",
    "quantity('1Gi') == quantity('1024Mi')": "bool true",
    "cidr('10.0.0.0/8').containsIP('10.1.1.1')": "bool true",
    "url('https://[::1]:80/a b?k=v').getQuery()": 'map {"k":["v"]}',
    "semver('1.2.3-a.1').isGreaterThan(semver('1.2.3-a.b'))": "bool false",
    "format.uuid().validate('x').value()": 'list ["does not match the UUID format"]',
    "sets.equivalent([1, 2], [2, 1, 1])": "bool true",
    "type(quantity('1')) == kubernetes.Quantity": "bool true",
    "jsonpatch.escapeKey('a/b~c')": "string a~1b~0c",
}
ERRORS = {
    "dyn('10.0.0.1').ip()": "no such overload: ip(string)",
    "ip(dyn(cidr('10.0.0.0/8')))": "no such overload: ip(net.CIDR)",
    "dyn(ip('10.0.0.1')) == dyn(1)": "no such overload",
    "optional.of(quantity('1')) == optional.of(dyn(1))": "no such overload",
    "[dyn(2), dyn(null), dyn(1)].isSorted()": "no such overload",
    "[dyn(2), dyn(int)].min()": "no such overload",
    "[dyn([1])].isSorted()": "no such overload: isSorted(list)",
    "dyn(duration('1s')).size()": "no such overload",
    "dyn(null).sort()": "no such overload: sort",
    "dyn('a').add(1)": "no such overload: add(string, int)",
    "dyn({'a': 1}).flatten(2)": "no such overload: map(dyn, dyn).flatten(int)",
    "{'a': 1}[dyn(b'a')]": "invalid qualifier type: types.Bytes",
    "{'a': 1}[dyn(authorizer)]": "invalid qualifier type: library.authorizerVal",
    "{'a': 1}[?dyn(quantity('1'))].hasValue()": "invalid qualifier type: cel.Quantity",
    "duration(size('a'))": "type conversion error from 'int' to 'google.protobuf.Duration'",
    "object.x": "no such key: x",
    "oldObject.x": "no such key: x",
    "has(object.metadata.x.y)": "no such key: x",
    "object.metadata.name[0]": "no such key: 0",
    "object.data.k + 1": "no such overload",
    "dyn({}) + dyn({})": "no such overload: _+_",
    "size(dyn(1))": "no such overload: size",
    "dyn(1).join()": "no such overload: join(int)",
    "1 / 0": "division by zero",
    "9223372036854775807 + 1": "integer overflow",
    "[1][3]": "index out of bounds: 3",
    "bool(object.data.k)": "type conversion error from 'string' to 'bool'",
    "object.data.k.matches('[' + object.data.k)": "error parsing regexp: missing closing ]: `[v`",
    "'abc'.substring(2, 1)": "invalid substring range. start: 2, end: 1",
    "optional.none().value()": "optional.none() dereference",
    "[].min()": "min called on empty list",
    "dyn(1).map(x, x)": "got 'types.Int', expected iterable type",
    "{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k})": "insert failed: key 1 already exists",
    "ip('::g')": 'IP Address "::g" parse error during conversion from string: ParseAddr("::g"): each '
    'colon-separated field must have at least one digit (at "g")',
    "semver('01.2.3')": 'Major number must not contain leading zeroes "01"',
    "authorizer.group('').resource('')": "resource must not be empty",
    LONG: OUT_OF_COST,
}
"""What each evaluates to."""


def names() -> dict[str, Any]:
    def ask(user: User, info: RequestInfo) -> AccessDecision:
        ASKED.append((user.name, info))
        return AccessDecision(info.verb == "get", "told")

    authorizer = Asker(User("me"), ask)
    return {
        "object": OBJECT,
        "oldObject": None,
        "params": None,
        "request": {"operation": "CREATE"},
        "namespaceObject": None,
        "authorizer": authorizer,
        "authorizer.requestResource": ResourceCheck(authorizer, "", "configmaps", namespace="a"),
        "variables": {"v": 1},
    }


def shown(expression: str) -> str:
    told = program(expression).evaluated(names())
    return told.error or f"{type_of(told.value)} {format(Meter(LIMIT), '%s', [told.value])}"


@pytest.mark.parametrize(("expression", "expected"), VALUES.items(), ids=VALUES)
def test_a_value(expression: str, expected: str) -> None:
    assert shown(expression) == expected


@pytest.mark.parametrize(("expression", "expected"), ERRORS.items(), ids=ERRORS)
def test_an_error(expression: str, expected: str) -> None:
    assert program(expression).evaluated(names()).error == expected


def test_the_authorizers_are_asked_for_what_the_expression_says() -> None:
    ASKED.clear()
    assert shown("authorizer.path('/healthz').check('get').allowed()") == "bool true"
    assert shown("authorizer.requestResource.check('create').reason()") == "string told"
    of_account = "authorizer.serviceAccount('a', 'b').group('apps').resource('deployments').name('c')"
    assert shown(f"{of_account}.subresource('scale').check('get').allowed()") == "bool true"
    assert [user for user, _ in ASKED] == ["me", "me", "system:serviceaccount:a:b"]
    assert ASKED[0][1] == RequestInfo("get", "/healthz")
    assert (ASKED[1][1].resource, ASKED[1][1].namespace) == ("configmaps", "a")
    assert (ASKED[2][1].api_group, ASKED[2][1].subresource, ASKED[2][1].name) == ("apps", "scale", "c")


def test_a_third_check_costs_too_much() -> None:
    one = "authorizer.path('/a').check('get').allowed()"
    assert shown(f"{one} && {one}") == "bool true"
    assert shown(f"{one} && {one} && {one}") == OUT_OF_COST


def test_what_is_long_is_not_evaluated_on_the_loop() -> None:
    began = time.process_time()
    with pytest.raises(Cut):
        Program(LONG).evaluated(names(), quick=True)
    assert time.process_time() - began < 0.5
    checked = "authorizer.path('/a').check('get').allowed()"
    assert Program(checked).evaluated(names(), quick=True).value is True, "a check is no work"


def test_the_cost_of_what_was_evaluated_is_told() -> None:
    # An identifier and two selections, a comparison.
    assert Program("object.data.k == 'v'").evaluated(names()).cost == 4
    assert Program(LONG).evaluated(names()).cost > LIMIT > QUICK


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000).map(x, lists.range(1000))",
        "'a'.replace('', 'aaaaaaaaaa').replace('', 'aaaaaaaaaa').replace('', 'aaaaaaaaaa')"
        ".replace('', 'aaaaaaaaaa').replace('', 'aaaaaaaaaa').replace('', 'aaaaaaaaaa')",
        "[[[1,1,1,1,1,1,1,1,1,1]]].map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a])"
        ".map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a])"
        ".map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, [a,a,a,a,a,a,a,a,a,a]).map(a, '%s'.format([a]))",
        "lists.range(9223372036854775807)",
        "lists.range(1000).map(x, 'aaaaaaaaaa'.matches('(a*)*(a*)*(a*)*(a*)*(a*)*(a*)*b'))",
        "('%.' + '9' + '99999999f').format([1.0])",
    ],
)
def test_nothing_takes_long_or_much(expression: str) -> None:
    began = time.process_time()
    Program(expression).evaluated(names())
    assert time.process_time() - began < 5


ATOMS = st.sampled_from(
    [
        *(
            "object",
            "oldObject",
            "object.data",
            "object.metadata.labels",
            "variables.v",
            "1",
            "-1",
            "1u",
            "1.5",
        ),
        *("'a'", "''", "b'a'", "true", "false", "null", "[]", "[1, 2]", "{}", "{'a': 1}", "int", "request"),
        *("timestamp('2020-01-01T00:00:00Z')", "duration('1h')", "quantity('1')", "ip('::1')", "authorizer"),
        *("optional.of(1)", "optional.none()", "cidr('10.0.0.0/8')", "semver('1.2.3')", "url('https://a')"),
    ]
)
METHODS = st.sampled_from(
    [
        *(
            "size",
            "lowerAscii",
            "trim",
            "join",
            "sum",
            "max",
            "isSorted",
            "reverse",
            "distinct",
            "sort",
            "first",
        ),
        *("value", "hasValue", "family", "masked", "getHost", "major", "isInteger", "getHours", "flatten"),
        *("startsWith", "matches", "find", "findAll", "split", "charAt", "substring", "indexOf", "format"),
        *("containsIP", "isLessThan", "add", "validate", "orValue", "group", "check", "path", "getFullYear"),
    ]
)
OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "<", ">=", "==", "!=", "&&", "||", "in"])
FUNCTIONS = st.sampled_from(
    [
        "size",
        "type",
        "int",
        "uint",
        "double",
        "string",
        "bool",
        "bytes",
        "timestamp",
        "duration",
        "quantity",
        "ip",
    ]
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, OPERATORS, inner),
        st.builds("{}.{}()".format, inner, METHODS),
        st.builds("{}.{}({})".format, inner, METHODS, inner),
        st.builds("{}({})".format, FUNCTIONS, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}.?a.b".format, inner),
        st.builds("has({}.a)".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}.map(x, {})".format, inner, inner),
        st.builds("{}.all(x, {} == x)".format, inner, inner),
        st.builds("{}.transformMap(k, v, {})".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
    )


@settings(max_examples=100, deadline=None)
@given(st.recursive(ATOMS, larger, max_leaves=8))
def test_no_expression_raises(expression: str) -> None:
    """Types are not checked here, so anything may meet anything."""
    told = Program(expression).evaluated(names())
    assert isinstance(told.error, str)
    try:
        format(Meter(LIMIT), "%s", [told.value])
    except CelError as error:
        assert str(error)
