"""R-SYS-1: which expressions in the schema of a custom resource are refused. The words are kube-apiserver's,
asked with the same schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AT = "spec.validation.openAPIV3Schema.properties[f]"
INTEGER: dict[str, Any] = {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string", "maxLength": 5}
CHANGES = {"rule": "oldSelf == self"}
APART = "oldSelf cannot be used on the uncorrelatable portion of the schema within"


def definition(schema: dict[str, Any]) -> dict[str, Any]:
    whole = {"type": "object", "properties": {"f": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    names = {"plural": "gs", "kind": "G"}
    spec = {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "gs.ex.com"}, "spec": spec}


def ruled(schema: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": list(rules)}


async def causes(api: Conversation, schema: dict[str, Any]) -> list[tuple[str, str]]:
    """Path below the schema, and the end of what is said, which follows the rule itself."""
    answer = await api.post(f"{DEFINITIONS}?dryRun=All", definition(schema))
    found = answer.body.get("details", {}).get("causes", [])
    return [(one["field"].removeprefix(AT), one["message"]) for one in found]


@pytest.mark.parametrize(
    ("schema", "rule", "said"),
    [
        (INTEGER, "self > 1", ""),
        (INTEGER, "self > 1 // a comment", ""),
        (INTEGER, "oldSelf < self", ""),
        (INTEGER, "foo == 1", "undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^"),
        (INTEGER, "request.x", "undeclared reference to 'request' (in container '')\n | request.x\n | ^"),
        (INTEGER, "self", "cel expression must evaluate to a bool"),
        (INTEGER, "self.a", "type 'int' does not support field selection\n | self.a\n | ....^"),
        (INTEGER, 'self > "x"', "found no matching overload for '_>_' applied to '(int, string)'\n"
         ' | self > "x"\n | .....^'),
        (INTEGER, "self == 1.0", "found no matching overload for '_==_' applied to '(int, double)'\n"
         " | self == 1.0\n | .....^"),
        (TEXT, "self.startsWith('a')", ""),
        (TEXT, "self > 1", "found no matching overload for '_>_' applied to '(string, int)'\n"
         " | self > 1\n | .....^"),
        ({"type": "string", "format": "date-time"}, 'self > timestamp("2020-01-01T00:00:00Z")', ""),
        ({"type": "object", "properties": {"a": INTEGER}}, "self.a == 1 && has(self.a)", ""),
        ({"type": "array", "items": TEXT, "maxItems": 3}, "self.all(x, x.startsWith('a'))", ""),
        ({"x-kubernetes-int-or-string": True}, 'self == "a"', ""),
    ],
)  # fmt: skip
async def test_a_rule(schema: dict[str, Any], rule: str, said: str, api: Conversation) -> None:
    found = await causes(api, ruled(schema, {"rule": rule}))
    assert [path for path, _ in found] == ([".x-kubernetes-validations[0].rule"] if said else [])
    assert not said or found[0][1].endswith(said), found


async def test_a_rule_is_shown_as_by_kubernetes(api: Conversation) -> None:
    message = (
        'Invalid value: {"Rule":"self \\u003c","Message":"m","MessageExpression":"","Reason":null,'
        '"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:7: Syntax error: '
    )
    found = await causes(api, ruled(INTEGER, {"rule": "self <", "message": "m"}))
    assert found[0][1].startswith(message)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("'a'", ""),
        ("1", "messageExpression must evaluate to a string"),
        ("foo", "messageExpression compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo'"),
    ],
)
async def test_a_message(expression: str, said: str, api: Conversation) -> None:
    found = await causes(api, ruled(INTEGER, {"rule": "true", "messageExpression": expression}))
    assert [path for path, _ in found] == ([".x-kubernetes-validations[0].messageExpression"] if said else [])
    assert not said or said in found[0][1]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "array", "maxItems": 3, "items": ruled(TEXT, CHANGES)}, AT),
        (
            {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set", "items": ruled(TEXT, CHANGES)},
            AT,
        ),
        ({"type": "object", "maxProperties": 3, "additionalProperties": ruled(TEXT, CHANGES)}, ""),
        (
            {
                "type": "array",
                "maxItems": 3,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": ruled({"type": "object", "required": ["k"], "properties": {"k": TEXT}}, CHANGES),
            },
            "",
        ),
        ({"type": "array", "maxItems": 3, "items": ruled(TEXT, {"rule": '"oldSelf" == self'})}, ""),
    ],
)
async def test_where_nothing_tells_what_was_there_before(
    schema: dict[str, Any], path: str, api: Conversation
) -> None:
    found = await causes(api, schema)
    shown = f'Invalid value: "oldSelf == self": {APART} {path}'
    assert found == ([(".items.x-kubernetes-validations[0].rule", shown)] if path else [])


@pytest.mark.parametrize(
    ("rule", "refused"), [("oldSelf.hasValue()", False), ("self > 1", True), ("'oldSelf' != ''", True)]
)
async def test_what_was_there_may_be_nothing(rule: str, refused: bool, api: Conversation) -> None:
    found = await causes(api, ruled(INTEGER, {"rule": rule, "optionalOldSelf": True}))
    why = "Invalid value: true: may not be set if oldSelf is not used in rule"
    assert found == ([(".x-kubernetes-validations[0].optionalOldSelf", why)] if refused else [])
