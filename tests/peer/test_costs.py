"""R-SYS-8: an expression of a policy ends where Kubernetes ends it, to the unit.

So do all of a policy together, its conditions, messages, annotations and mutations.

Each is joined to searches in texts of the object, which cost as much as they are long. With these it costs,
by podling's count, just what an expression may, and then one more: both servers take the first, and end the
second. So each function, operator and macro costs the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest

from peer.server import Server
from peer.test_policies import GROUP, SHARED, TRIES
from podling.apiserver.cel.authorizer import AccessDecision, Asker, ResourceCheck
from podling.apiserver.cel.evaluation import LIMIT, OUT_OF_BUDGET, program
from podling.apiserver.request.request import User

EXPRESSIONS = Path(__file__).with_name("costs.txt").read_text().splitlines()
AT_ONCE = 8
"""Expressions of one policy, which may cost ten times what one may."""
LABEL = "costs-of-test"
SEARCHED = 10_000
OBJECT: dict[str, Any] = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "obj", "annotations": {"n": "1"}, "labels": {"a": "b", "x-y": "z"}},
    "data": {"k": "v", "n": "12", "long": "aaaaaaaaab", "p": "a" * SEARCHED},
}


def joined(expression: str, name: str) -> str:
    searched = f"object.data.p.contains(object.data.q{name})", f"object.data.r{name}.contains('b')"
    return f"[dyn({expression})].exists(x, false) || {' || '.join(searched)}"


def texts(name: str, cost: int) -> dict[str, str]:
    """What is searched, and what for, so that it costs so much, from 1,001 on."""
    thousands, rest = divmod(cost, 1000)
    if not rest:
        thousands, rest = thousands - 1, 1000
    return {f"q{name}": "b" * 10 * thousands, f"r{name}": "a" * 10 * rest}


def body(case: str, costs: Mapping[str, int]) -> dict[str, Any]:
    metadata = {**OBJECT["metadata"], "labels": {**OBJECT["metadata"]["labels"], LABEL: case}}
    data = dict(OBJECT["data"])
    for name, cost in costs.items():
        data |= texts(name, cost)
    return {**OBJECT, "metadata": metadata, "data": data}


def cost_of(expression: str, name: str, about: Mapping[str, Any]) -> int:
    """What the whole costs by podling's count, of this object."""
    authorizer = Asker(User("me"), lambda user, info: AccessDecision(True))
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    request = {
        "uid": "",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "obj",
        "namespace": SHARED,
        "operation": "CREATE",
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "object": None,
        "oldObject": None,
        "dryRun": True,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
    }
    created = {"metadata": {**about["metadata"], "creationTimestamp": "2020-01-01T00:00:00Z"}}
    labels = {"kubernetes.io/metadata.name": SHARED}
    namespace = {
        "metadata": {"name": SHARED, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    names = {
        "object": {**about, **created},
        "oldObject": None,
        "request": request,
        "namespaceObject": namespace,
        "variables": {"v": 1},
        "authorizer": authorizer,
        "authorizer.requestResource": ResourceCheck(authorizer, "", "configmaps"),
    }
    return program(joined(expression, name)).evaluated(names).cost


BATCHES = [
    dict(zip(ascii_lowercase, EXPRESSIONS[at : at + AT_ONCE], strict=False))
    for at in range(0, len(EXPRESSIONS), AT_ONCE)
]
"""Expressions by name."""


SEARCH, LAST = (f"(object.data.p.contains(object.data.q{n}) || object.data.r{n}.contains('b'))" for n in "ab")
"""What is false, and costs as much as its texts are long."""
NEARLY, LEAST, MOST = 980_000, 1001, 999_000
"""What `SEARCH` costs, and `LAST` may."""


def of(*expressions: str) -> list[dict[str, str]]:
    return [{"expression": one} for one in expressions]


def named(*expressions: str) -> list[dict[str, str]]:
    return [{"name": f"v{i}", "expression": one} for i, one in enumerate(expressions)]


def patched(expression: str) -> dict[str, Any]:
    patch = f"[JSONPatch{{op: 'add', path: '/data/x', value: string({expression})}}]"
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}


def applied(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def all_of(count: int) -> str:
    return " || ".join(f"variables.v{i}" for i in range(count))


def configurations(condition: str) -> dict[str, str]:
    labels = f"Object.metadata.labels{{x: ({condition}) ? 'a' : 'b'}}"
    return {
        "a field that is applied": f"Object{{immutable: {condition}}}",
        "a label that is applied": f"Object{{metadata: Object.metadata{{labels: {labels}}}}}",
        "an object that is chosen": f"({condition}) ? Object{{}} : Object{{immutable: false}}",
    }


def budgets() -> dict[str, tuple[str, dict[str, Any]]]:
    """Kind and spec of policies which cost about as much as they may."""
    no, ten = f"!{SEARCH}", [SEARCH] * 10
    texts = [f"{one} ? 'x' : 'y'" for one in (*ten, LAST)]
    messages = [{"expression": one, "messageExpression": f"{one} ? 'x' : 'y'"} for one in (*ten[:5], LAST)]
    annotations = [{"key": f"k{i}", "valueExpression": text} for i, text in enumerate(texts)]
    conditions = {"matchConditions": named(no, no, f"!{LAST}")}
    never = {"reinvocationPolicy": "Never"}
    variables = {**never, "variables": named(*ten)}
    whole = f"{all_of(10)} || {LAST}"
    return {
        "validations": ("validating", {"validations": of(*[no] * 10, f"!{LAST}")}),
        "a variable": (
            "validating",
            {
                "variables": named(SEARCH),
                "validations": of(*[no] * 9, "!variables.v0", "!variables.v0", f"!{LAST}"),
            },
        ),
        "messages": ("validating", {"validations": messages}),
        "annotations": ("validating", {"validations": of(*[no] * 9), "auditAnnotations": annotations}),
        "conditions": ("validating", {**conditions, "validations": of("false")}),
        "a patch": ("mutating", {**variables, "mutations": [patched(whole)]}),
        "two patches": ("mutating", {**variables, "mutations": [patched(f"{all_of(6)} || {LAST}")] * 2}),
        **{
            name: ("mutating", {**variables, "mutations": [applied(of_object)]})
            for name, of_object in configurations(whole).items()
        },
        "conditions of a mutation": ("mutating", {**never, **conditions, "mutations": [patched("true")]}),
    }


BUDGETS = budgets()


@pytest.fixture(scope="module")
def _policies(kubernetes: Server, podling: Server) -> Iterator[None]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    made = []
    for index, batch in enumerate(BATCHES):
        variables = [{"name": "v", "expression": "1"}]
        variables += [{"name": name, "expression": joined(one, name)} for name, one in batch.items()]
        match = {
            "resourceRules": [rule],
            "objectSelector": {"matchLabels": {LABEL: f"costs-{index}"}},
        }
        validations = [{"expression": f"variables.{name}"} for name in batch]
        spec = {"variables": variables, "validations": validations, "matchConstraints": match}
        made.append(("validating", f"costs-{index}", spec, "Warn"))
    for number, (kind, spec) in enumerate(BUDGETS.values()):
        match = {"resourceRules": [rule], "objectSelector": {"matchLabels": {LABEL: f"budget-{number}"}}}
        made.append((kind, f"budget-{number}", {**spec, "matchConstraints": match}, "Deny"))
    last = {"matchLabels": {LABEL: "last"}}
    match = {"resourceRules": [rule], "objectSelector": last}
    spec = {"validations": of("false"), "matchConstraints": match}
    made.append(("validating", "costs-last", spec, "Deny"))
    for server in (kubernetes, podling):
        with server.asking() as asking:
            for kind, name, spec, action in made:
                policy = {"metadata": {"name": name}, "spec": spec}
                bound: dict[str, Any] = {"policyName": name}
                if kind == "validating":
                    bound["validationActions"] = [action]
                binding = {"metadata": {"name": name}, "spec": bound}
                for plural, one in (("policies", policy), ("policybindings", binding)):
                    answer = asking.ask("POST", f"{GROUP}/{kind}admission{plural}", one)
                    assert answer.code == 201, (server.name, spec, answer.body["message"])
            target = f"/api/v1/namespaces/{SHARED}/configmaps?dryRun=All"
            for _ in range(TRIES):
                if asking.ask("POST", target, body("last", {})).code == 422:
                    break
    yield
    for server in (kubernetes, podling):
        with server.asking() as asking:
            for kind, name, _, _ in made:
                for plural in ("policies", "policybindings"):
                    asking.ask("DELETE", f"{GROUP}/{kind}admission{plural}/{name}")


def ended(server: Server, case: str, costs: Mapping[str, int]) -> set[str]:
    """The names of those that cost too much."""
    target = f"/api/v1/namespaces/{SHARED}/configmaps?dryRun=All"
    answer = server.ask("POST", target, body(case, costs))
    assert answer.code == 201, answer.body["message"]
    told = answer.headers.get("Warning", "")
    return set(re.findall(r"composited variable \W+(\w)\W+ fails to evaluate: operation cancelled", told))


@pytest.mark.usefixtures("_policies")
@pytest.mark.parametrize("index", range(len(BATCHES)))
def test_an_expression_costs_as_much_as_by_kubernetes(
    index: int, kubernetes: Server, podling: Server
) -> None:
    batch, case = BATCHES[index], f"costs-{index}"
    least = dict.fromkeys(batch, 1001)
    own = {name: cost_of(one, name, body(case, least)) - 1001 for name, one in batch.items()}
    within = {name: LIMIT - cost for name, cost in own.items()}
    beyond = {name: cost + 1 for name, cost in within.items()}
    # What either ended though it is within, and what it did not though it is beyond.
    wrong = {
        server.name: [
            [batch[name] for name in sorted(ended(server, case, within))],
            [batch[name] for name in sorted(set(batch) - ended(server, case, beyond))],
        ]
        for server in (kubernetes, podling)
    }
    assert wrong == {server.name: [[], []] for server in (kubernetes, podling)}


@pytest.mark.usefixtures("_policies")
@pytest.mark.parametrize("name", BUDGETS)
def test_all_of_a_policy_costs_as_much_as_by_kubernetes(
    name: str, kubernetes: Server, podling: Server
) -> None:
    case = f"budget-{list(BUDGETS).index(name)}"

    def told(server: Server, last: int) -> tuple[int, str]:
        answer = server.ask("POST", target, body(case, {"a": NEARLY, "b": last}))
        message = answer.body.get("message", "")
        if name in configurations(""):
            # Kubernetes has evaluated it, and then cannot say of what type the object is.
            return 0, OUT_OF_BUDGET if OUT_OF_BUDGET in message else ""
        return answer.code, message

    target = f"/api/v1/namespaces/{SHARED}/configmaps?dryRun=All"
    within, beyond = LEAST, MOST
    least = told(kubernetes, LEAST)
    while beyond - within > 1:
        middle = (within + beyond) // 2
        if told(kubernetes, middle) == least:
            within = middle
        else:
            beyond = middle
    for last in (within, beyond):
        assert told(podling, last) == told(kubernetes, last)
    assert (beyond == MOST) == (name == "two patches")
