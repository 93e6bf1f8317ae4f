"""R-SYS-8: expressions of CEL compile, or do not, as by Kubernetes, and it is said in the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest

from nested_expressions import DEEPEST, ENDLESS
from peer.broken_expressions import broken_expressions
from peer.made_expressions import made_expressions
from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, answer_of, differences, shown
from peer.server import Server
from peer.test_admission_registration import GROUP, MUTATING_POLICY, POLICY, WEBHOOK, made

EXPRESSIONS = Path(__file__).with_name("expressions.txt").read_text().splitlines()
AT_ONCE = 60
VARIABLES = {
    "a": "1",
    "list": "[1]",
    "map": "{'a': 1}",
    "numbers": "{1: 1}",
    "lists": "[[1]]",
    "quantity": "quantity('1')",
    "optional": "optional.of(1)",
    "dynamic": "object",
    "request": "request",
    "nothing": "null",
    "time": "timestamp('2020-01-01T00:00:00Z')",
    "span": "duration('1s')",
    "type": "int",
    "empty": "[]",
    "authorizer": "authorizer",
    "bytes": "b'a'",
    "composed": "variables.a + 1",
    "early": "variables.late",
    "late": "true",
    "wrong": "1 +",
    "after": "variables.wrong",
}
OF_VARIABLES = [
    *(f"variables.{name}" for name in VARIABLES),
    "variables.a == 1",
    "variables.absent == 1",
    "variables.a == 'x'",
    "has(variables.absent)",
    "has(variables.a)",
    "variables.absent.c.d",
    "variables.?a.hasValue()",
    "variables.list[0] == 1",
    "variables.quantity.isInteger()",
    "variables.optional.value() == 1",
    "variables.dynamic.x.y == 1",
    "variables.request.name == 1",
    "variables.composed == 'a'",
    "variables",
]
CONDITIONS = [
    "request.name == 'a'",
    "params.x == 1",
    "namespaceObject.metadata.name == 'a'",
    "authorizer.path('a').check('b').allowed()",
    "variables.a == 1",
    " 1 ",
    "object",
    "1 ==",
    "a\n== b",
    " \n 1 +",
    "\ttrue && unknown",
]
MESSAGES = [
    "params.x",
    "string(params.x)",
    "1",
    "authorizer.group('').resource('a').check('b').reason()",
    "namespaceObject.metadata.name + request.name + 'a ' + object.x + oldObject.y",
    " dyn('a')",
    "null",
    "variables.x",
]
VALUES = [
    *("'a'", "null", "1", "object.x", "true ? 'a' : null", "dyn('a')", " 1 +"),
    "authorizer.path('a').check('b').reason()",
    "params",
]
APPLIED = [
    "Object{}",
    "Object{spec: Object.spec{replicas: 1}}",
    "Object{spec: Object.spec{replicas: 1, a: Object.spec.b{}}}",
    "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: 'b'}}}",
    "1",
    "object",
    "Object.spec{}",
    "JSONPatch{}",
    "Object{spec: {'a': 1}}",
    "Object{?a: optional.none()}",
    "Foo{}",
    "Object{} == 1",
    "Objectx{}",
    "Object.metadata{name: 1}",
    "[Object{}][0]",
    "true ? Object{} : null",
    "has(Object{}.a) ? Object{} : Object{}",
    "Object{a: 1}.b",
    "Object{spec: Object.spec{a: foo}}",
    "object.x",
    "dyn(Object{})",
    "variables.x",
    "Object{a:b}",
    "jsonpatch.escapeKey('a')",
]
PATCHED = [
    "[]",
    "[JSONPatch{}]",
    "[JSONPatch{op: 'add', path: '/a', value: 1, from: '/b'}]",
    "[JSONPatch{op: 1}]",
    "JSONPatch{}",
    "[Object{}]",
    "[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a'), value: Object{a: 1}}]",
    "object.x.map(x, JSONPatch{op: 'add'})",
    "[JSONPatch{}].filter(x, x.op == 'a')",
    "[JSONPatch{value: [1,'a']}]",
    "[1].map(x, JSONPatch{value: x})",
    "[JSONPatch{}][0].op",
    "[] + [JSONPatch{}]",
    "true ? [JSONPatch{}] : []",
    "[JSONPatch{}, 1]",
    "[JSONPatch{path: object.x}]",
    "dyn([JSONPatch{}])",
    "object",
    "[JSONPatch{}, Object{}]",
]
WRONG_INSIDE = [
    "(" * 60 + inner + ")" * 60
    for inner in ("99999999999999999999", "package", "[1].all(1, true)", "has(a)", "nothing", "1 + 'a'")
]
CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}


def policy(**spec: Any) -> dict[str, Any]:
    return made(POLICY["kind"], spec={**POLICY["spec"], **spec})


def mutating(mutation: dict[str, Any]) -> dict[str, Any]:
    return made(MUTATING_POLICY["kind"], spec={**MUTATING_POLICY["spec"], "mutations": [mutation]})


def hook(condition: str) -> dict[str, Any]:
    webhook = {**WEBHOOK, "matchConditions": [{"name": "a", "expression": condition}]}
    return made("ValidatingWebhookConfiguration", webhooks=[webhook])


def sequences() -> list[Compared]:
    variables = [{"name": name, "expression": text} for name, text in VARIABLES.items()]
    right = [one for one in variables if one["name"] not in ("early", "wrong")]
    bodies: dict[str, list[dict[str, Any]]] = {
        f"validations from {first}": [
            policy(validations=[{"expression": text}]) for text in EXPRESSIONS[first : first + AT_ONCE]
        ]
        for first in range(0, len(EXPRESSIONS), AT_ONCE)
    }
    bodies["variables"] = [
        policy(variables=variables),
        policy(variables=variables, validations=[{"expression": text} for text in OF_VARIABLES]),
        *(policy(variables=right, validations=[{"expression": text}]) for text in OF_VARIABLES),
    ]
    bodies["conditions"] = [
        *map(hook, CONDITIONS),
        *(policy(matchConditions=[{"name": "a", "expression": text}]) for text in CONDITIONS),
        policy(paramKind=CONFIG_MAPS, matchConditions=[{"name": "a", "expression": "params.x == 1"}]),
    ]
    bodies["messages"] = [
        policy(paramKind=CONFIG_MAPS, validations=[{"expression": "true", "messageExpression": text}])
        for text in MESSAGES
    ]
    bodies["values"] = [policy(auditAnnotations=[{"key": "a", "valueExpression": text}]) for text in VALUES]
    bodies["applied"] = [
        mutating({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}})
        for text in APPLIED
    ]
    bodies["patched"] = [
        mutating({"patchType": "JSONPatch", "jsonPatch": {"expression": text}}) for text in PATCHED
    ]
    bodies["long"] = [
        policy(validations=[{"expression": text}])
        for text in (
            f"'{'a' * 99_990}' == ''",
            f"'{'a' * 100_001}' == ''",
            " && ".join(["true"] * 2_000),
            f"[{'1, ' * 2_000} 'a'] == []",
        )
    ]
    bodies["deep"] = [
        policy(validations=[{"expression": text}])
        for made, deepest, _ in DEEPEST.values()
        for text in (made(deepest), made(deepest + 1))
    ]
    bodies["deep"] += [
        policy(validations=[{"expression": text}]) for text in (*ENDLESS.values(), *WRONG_INSIDE)
    ]
    return [Compared(f"expressions: {name}", [asked(body) for body in made]) for name, made in bodies.items()]


def asked(body: dict[str, Any]) -> Ask:
    plural = {"Validating": "validatingadmissionpolicies", "Mutating": "mutatingadmissionpolicies"}
    first = body["kind"].partition("A")[0]
    return Ask("POST", f"{GROUP}/{plural.get(first, 'validatingwebhookconfigurations')}?dryRun=All", body)


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_expressions(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


MADE, BROKEN, SEED = 3_000, 2_000, 1
"""Expressions made by chance."""
MADE_AT_ONCE = 15


def compiled(
    server: Server, expressions: Sequence[str], form: str = "[dyn({})].exists(x, false)"
) -> dict[str, list[str] | None]:
    """What is wrong with each; None for those of which Kubernetes' API server gives no account: it panics.
    `form`: in which they are asked."""
    found: dict[str, list[str] | None] = {}
    with server.asking() as asking:
        for first in range(0, len(expressions), MADE_AT_ONCE):
            part = expressions[first : first + MADE_AT_ONCE]
            body = policy(validations=[{"expression": form.replace("{}", text)} for text in part])
            try:
                answer = answer_of(asking, asked(body), "", [])
            except RemoteDisconnected:
                asking.connection.close()
                found |= dict.fromkeys(part)
                continue
            told: dict[str, list[str]] = {}
            for cause in answer.body.get("details", {}).get("causes", ()):
                told.setdefault(cause["field"], []).append(cause["message"])
            for number, text in enumerate(part):
                found[text] = told.get(f"spec.validations[{number}].expression", [])
    return found


def test_expressions_made_by_chance(kubernetes: Server, podling: Server) -> None:
    expressions = list(dict.fromkeys(made_expressions(SEED, MADE)))
    theirs, ours = compiled(kubernetes, expressions), compiled(podling, expressions)
    told = [text for text in expressions if theirs[text] is not None]
    assert len(told) > 0.9 * len(expressions)
    assert 0.5 < sum(not theirs[text] for text in told) / len(told) < 0.9
    assert {text: ours[text] for text in told} == {text: theirs[text] for text in told}


DEEP = re.compile(r"^(?:[\[({]|\{1:|f\(|a\[|-\(|a\{b:|1\+\(){29}")
SYNTAX_FAULT = re.compile(r"^ERROR: <input>:\S+ Syntax error: .*", re.MULTILINE)


def test_broken_expressions_made_by_chance(kubernetes: Server, podling: Server) -> None:
    expressions = [text for text in dict.fromkeys(broken_expressions(SEED, BROKEN)) if text.strip()]
    theirs, ours = compiled(kubernetes, expressions, "{}"), compiled(podling, expressions, "{}")
    told = [text for text in expressions if theirs[text] is not None]
    assert len(told) > 0.9 * len(expressions)
    broken = [text for text in told if "Syntax error" in "".join(theirs[text] or ())]
    assert len(broken) > 0.6 * len(told)
    differ = {text: (theirs[text], ours[text]) for text in told if ours[text] != theirs[text]}
    # What else is wrong is not told beside a fault of syntax that is nested deeper than the library parses.
    for text in [text for text in differ if text in broken and DEEP.search(text)]:
        said, ours_said = ("".join(one or ()) for one in differ[text])
        if SYNTAX_FAULT.findall(said.partition("compilation failed: ")[2]) == SYNTAX_FAULT.findall(
            ours_said.partition("compilation failed: ")[2]
        ):
            del differ[text]
    assert not differ
