"""Expressions of one object. The words are those that kube-apiserver answered with."""

from __future__ import annotations

import pytest

from podling.apiserver.cel.checker import TOO_COMPLEX, Expression
from podling.apiserver.cel.compilation import Compilation

SYNTAX = (
    "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', "
    "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def fault(text: str) -> str:
    return Compilation().fault(Expression(text, ("bool",)))


def said(column: int, words: str, text: str) -> str:
    return f"compilation failed: ERROR: <input>:1:{column}: {words}\n | {text}\n | {'.' * (column - 1)}^"


@pytest.mark.parametrize(
    "text",
    [
        "object.x == 1 || request.name.startsWith('a')",
        "authorizer.requestResource.check('get').allowed()",
        "quantity('1').isLessThan(quantity('1Gi')) && cidr('10.0.0.0/8').containsIP('10.0.0.1')",
        "1 < 2.0 && object.?x.hasValue()",
        "object.all(k, v, v == 1) && [2, 1].sort() == [1, 2]",
        "'%d'.format([object.x]) == '1'",
        "object.x == '`'",
    ],
)
def test_right_ones(text: str) -> None:
    assert fault(text) == ""


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("1 +", 4, SYNTAX),
        ("x.y.z", 1, "undeclared reference to 'x' (in container '')"),
        ("request.foo", 8, "undefined field 'foo'"),
        ("'a'.startsWith(1)", 15, "found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("1 == null", 3, "found no matching overload for '_==_' applied to '(int, null)'"),
        ("true && 1", 9, "expected type 'bool' but found 'int'"),
        ("[1].all(x, 'a')", 12, "expected type 'bool' but found 'string'"),
        ("[1, 'a'] == []", 5, "expected type 'int' but found 'string'"),
        ("has(object)", 5, "invalid argument to has() macro"),
        ("duration('x') == object", 10, "invalid duration argument"),
        ("object.matches('[')", 16, "invalid matches argument"),
        ("'%d'.format([1, 2]) == ''", 12, "too many arguments supplied to string.format (expected 1, got 2)"),
        ("object.`a` == 1", 8, "unsupported syntax: '`'"),
        ("Object{} == 1", 7, "undeclared reference to 'Object' (in container '')"),
        ("params.x == 1", 1, "undeclared reference to 'params' (in container '')"),
        ("1e400 == 1.0", 1, "invalid double literal"),
        ("true && duration('1s')", 17, "expected type 'bool' but found 'duration'"),
        ("[timestamp(1), 1] == []", 16, "expected type 'timestamp' but found 'int'"),
    ],
)
def test_wrong_ones(text: str, column: int, words: str) -> None:
    assert fault(text) == said(column, words, text)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", "int"),
        ("object", "dyn"),
        ("[{'a': 1u}]", "list(map(string, uint))"),
        ("type(1)", "type(int)"),
        ("request.kind", "kubernetes.GroupVersionKind"),
        ("object.?x", "optional_type(dyn)"),
        ("timestamp('2020-01-01T00:00:00Z')", "google.protobuf.Timestamp"),
    ],
)
def test_other_types(text: str, type_: str) -> None:
    assert fault(text) == f"must evaluate to bool but got {type_}"


def test_faults_are_told_in_the_order_in_which_they_stand() -> None:
    assert [line for line in fault("foo(unknown, 'é' + x)").splitlines() if "ERROR" in line] == [
        "compilation failed: ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')",
        "ERROR: <input>:1:5: undeclared reference to 'unknown' (in container '')",
        "ERROR: <input>:1:20: undeclared reference to 'x' (in container '')",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("double(string(bytes(b'a'))) > 1.0", "type conversion error from 'string' to 'double'"),
        (
            "duration(string(1u)) == object",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        ("uint(-2.0) == 1u", "unsigned integer overflow"),
        ("bool(dyn(1u))", "no such overload: bool(uint)"),
        ("(object.a ? object.b[b'a'] : string(dyn([1]))) == ''", "invalid qualifier type: types.Bytes"),
        ("object.a[?null].hasValue()", "invalid qualifier type: types.Null"),
        ("{timestamp(1): true}[timestamp(1)]", "invalid qualifier type: types.Timestamp"),
        ("object[duration('1h')] == 1", "invalid qualifier type: types.Duration"),
        ("object[[1]] == object[{'a': 1}]", "invalid qualifier type: *types.baseList"),
        ("{int: true}[int]", "invalid qualifier type: *types.Type"),
        ("object.a.find('[' + 'a') == ''", ""),
        ("int('x')", "must evaluate to bool but got int"),
    ],
)
def test_a_constant_that_cannot_be_evaluated(text: str, why: str) -> None:
    told = fault(text).removeprefix("Internal error: program instantiation failed: ")
    assert told == why


@pytest.mark.parametrize(
    "text",
    ["duration(0)", "duration(9223372036854775807)", "timestamp(9223372036854775807)", "duration(null)"],
)
def test_a_literal_that_is_no_time(text: str) -> None:
    function = text.partition("(")[0]
    assert fault(text) == said(len(function) + 2, f"invalid {function} argument", text)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("[null].flatten() == []", 15, "found no matching overload for 'flatten' applied to 'list(null).()'"),
        (
            "null.all(x, true)",
            1,
            "expression of type 'null' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[[[b'a']].flatten().max(), 1] == []", 28, "expected type 'bytes' but found 'int'"),
    ],
)
def test_types_are_those_of_cel_go(text: str, column: int, words: str) -> None:
    assert fault(text) == said(column, words, text)


def test_variables_are_known_to_those_that_follow() -> None:
    compilation = Compilation()
    for name, text in (("a", "1"), ("b", "variables.a + 1"), ("q", "quantity('1')"), ("wrong", "1 +")):
        told = compilation.fault(Expression(text, variable=name, composed=True))
        assert bool(told) == (name == "wrong")
    for text in ("variables.b == 2", "has(variables.a)", "variables.q.x == 1", "variables.wrong == 1"):
        assert compilation.fault(Expression(text, ("bool",), composed=True)) == ""
    text = "variables.c == 2"
    told = compilation.fault(Expression(text, ("bool",), composed=True))
    assert told == said(10, "undefined field 'c'", text)


def test_objects_have_any_field_and_patches_their_own() -> None:
    compilation = Compilation()
    objects = "Object{spec: Object.spec{replicas: 1, a: Object.spec.b{}}}"
    assert compilation.fault(Expression(objects, ("Object",), mutates=True)) == ""
    patches = "[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a'), value: 1}]"
    assert compilation.fault(Expression(patches, ("list(JSONPatch)",), mutates=True)) == ""
    told = compilation.fault(Expression("Object.spec{}", ("Object",), mutates=True))
    assert told == "must evaluate to Object but got Object.spec"


def test_the_longest() -> None:
    assert fault(f"'{'a' * 99_990}' == ''") == ""
    assert "code point size exceeds limit: size: 100009, limit 100000" in fault(f"'{'a' * 100_001}' == ''")


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        ("device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, true)))", ""),
        ("lists.range(111109).all(n, device.attributes['d']['a'] == 'b')", ""),
        ("lists.range(111110).all(n, device.attributes['d']['a'] == 'b')", TOO_COMPLEX),
        ("lists.range(3048).all(n, device.capacity['d'].all(k, k == device.driver))", ""),
        ("lists.range(3049).all(n, device.capacity['d'].all(k, k == device.driver))", TOO_COMPLEX),
        ("lists.range(1000000)", "must evaluate to bool or the unknown type, not list(int)"),
    ],
)
def test_what_a_selector_may_cost(selector: str, fault: str) -> None:
    assert Compilation().fault(Expression(selector, selects=True)) == fault
