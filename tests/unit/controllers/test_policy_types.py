"""What is for which kinds, and what policies are told of their types. The words are those of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.cel import checker
from podling.apiserver.cel.policy_types import Documented, Question, warnings
from podling.controllers.policy_types import MOST_KINDS, Kind, PolicyTypes, Served, kinds_of, unknown
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.types.admissionregistration import (
    ExpressionWarning,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec,
)

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
TOY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {"allOf": [{"$ref": "#/components/schemas/ToySpec"}]},
        "when": {"type": "string", "format": "date-time"},
    },
    "x-kubernetes-group-version-kind": [{"group": "toys.test", "kind": "Toy", "version": "v1"}],
}
SPEC = {
    "type": "object",
    "properties": {
        "size": WHOLE,
        "names": {"type": "array", "items": TEXT},
        "port": {"format": "int-or-string", "oneOf": [WHOLE, TEXT]},
        "parts": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/ToySpec"}},
        "amount": {"oneOf": [TEXT, {"type": "number"}]},
    },
}
DOCUMENT = json.encode({"components": {"schemas": {"Toy": TOY, "ToySpec": SPEC}}})
KIND = Documented("toys.test/v1", "Toy", DOCUMENT)


def rule(groups: str, versions: str, resources: str) -> NamedRuleWithOperations:
    return NamedRuleWithOperations(
        api_groups=groups.split(","), api_versions=versions.split(","), resources=resources.split(",")
    )


def told(*texts: str, kinds: Sequence[Documented] = (KIND,), **spec: Any) -> list[tuple[str, str]]:
    data = {"validations": [{"expression": text} for text in texts], **spec}
    params = KIND if "paramKind" in spec else None
    question = Question(json.from_data(data, ValidatingAdmissionPolicySpec), list(kinds), params)
    return [(one.field_ref, one.warning) for one in warnings(question)]


def test_the_kinds_of_rules() -> None:
    assert kinds_of([rule("apps", "v1", "deployments"), rule("", "v1", "pods")]) == [
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
    ]
    assert kinds_of([rule("", "v1", "events")]) == [("v1", "Event"), ("events.k8s.io/v1", "Event")]
    for one in (
        rule("*", "v1", "pods"),
        rule("", "*", "pods"),
        rule("", "v1", "*,pods/status"),
        rule("x", "v1", "y"),
    ):
        assert kinds_of([one]) == []
    many = "configmaps,daemonsets,deployments,jobs,namespaces,nodes,pods,replicasets,secrets,services,leases"
    assert len(kinds_of([rule("", "v1", many)])) == MOST_KINDS


def test_the_kinds_of_what_is_not_built_in() -> None:
    toys, pods = rule("toys.test,apps", "v1,v2", "toys"), rule("", "v1", "pods")
    rules = [toys, pods, rule("*", "v1", "toys"), rule("toys.test", "*", "toys")]
    assert unknown(rules) == [("apps", "v2"), ("toys.test", "v1"), ("toys.test", "v2")]
    served = [Served("toys.test", "v1", "toys", "Toy"), Served("toys.test", "v1", "toys/status", "Toy")]
    assert kinds_of(rules, served) == [("v1", "Pod"), ("toys.test/v1", "Toy")]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("object.nope == 1", 7, "undefined field 'nope'"),
        ("object.spec.size == 'a'", 18, "found no matching overload for '_==_' applied to '(int, string)'"),
        (
            "object.spec.names.all(n, n == 1)",
            28,
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
        ("object.spec.parts['a'].size == 1", 23, "undefined field 'size'"),
        ("object.spec.amount == 1", 12, "undefined field 'amount'"),
        ("oldObject.when == 1", 16, "found no matching overload for '_==_' applied to '(timestamp, int)'"),
        ("object == 1", 8, "found no matching overload for '_==_' applied to '(Toy0, int)'"),
        ("variables.a == 'a'", 13, "found no matching overload for '_==_' applied to '(int, string)'"),
        ("params.nope == 1", 7, "undefined field 'nope'"),
        (
            "[object.when, object.spec] == []",
            21,
            "expected type 'timestamp' but found 'Toy0.spec'",
        ),
    ],
)
def test_what_does_not_fit(text: str, column: int, words: str) -> None:
    variables = [{"name": "a", "expression": "object.spec.size"}]
    found = told(text, variables=variables, paramKind={"apiVersion": "toys.test/v1", "kind": "Toy"})
    shown = f"ERROR: <input>:1:{column}: {words}\n | {text}\n | {'.' * (column - 1)}^\n"
    assert found == [("spec.validations[0].expression", f"toys.test/v1, Kind=Toy: {shown}")]


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.port == 1 || object.spec.port == 'a'",
        "variables.s.nope == 1",
        "variables.wrong == 1 && variables.after == 1",
        "request.userInfo.extra['a'][0] == namespaceObject.metadata.name",
        "authorizer.path('/a').check('get').allowed()",
        "object == oldObject",
    ],
)
def test_what_fits(text: str) -> None:
    made = {"s": "object.spec", "wrong": "object.nope", "after": "variables.wrong + 1"}
    assert told(text, variables=[{"name": name, "expression": one} for name, one in made.items()]) == []


def test_each_kind_is_told_of() -> None:
    other = {**TOY, "x-kubernetes-group-version-kind": [{"group": "", "kind": "Box", "version": "v1"}]}
    document = json.encode({"components": {"schemas": {"Box": other, "ToySpec": SPEC}}})
    kinds = [Documented("v1", "Box", document), KIND, Documented("v1", "Unknown", document)]
    ((_, warning),) = told("object.a", kinds=[*kinds, Documented("v2", "Unknown", b"")])
    mark = "ERROR: <input>:1:7: undefined field 'a'\n | object.a\n | ......^\n"
    assert warning == f"/v1, Kind=Box: {mark}\ntoys.test/v1, Kind=Toy: {mark}"
    told_of = told("true", validations=[{"expression": "true", "messageExpression": "object.a"}])
    assert [path for path, _ in told_of] == ["spec.validations[0].messageExpression"]


def test_long_policies_are_checked_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    long = " && ".join(["object.spec.size == 1"] * 100)
    assert told(long) == []
    assert [path for path, _ in told(f"{long} && object.a == 1")] == ["spec.validations[0].expression"]
    monkeypatch.setattr(checker, "PATIENCE", 0)
    with pytest.raises(StatusError, match="too many or too long to be compiled"):
        told(long)


async def test_a_policy_is_told_once_for_each_generation(cluster: Cluster) -> None:
    asked: list[tuple[Sequence[Kind], list[str]]] = []

    async def check(
        spec: ValidatingAdmissionPolicySpec, kinds: Sequence[Kind], documents: Mapping[str, bytes]
    ) -> list[ExpressionWarning]:
        asked.append((kinds, sorted(documents)))
        return [ExpressionWarning("spec.validations[0].expression", "w")] if len(asked) == 1 else []

    policies = cluster.informers.of(ValidatingAdmissionPolicy)
    account = cluster.account("validatingadmissionpolicy-status-controller")
    await cluster.run(PolicyTypes(account, policies, check))
    rules = [
        {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [plural]}
        for group, plural in (("apps", "deployments"), ("", "pods"))
    ]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "paramKind": {"apiVersion": "x.y/v1", "kind": "Nope"},
        "validations": [{"expression": "true"}],
    }
    await cluster.make(ValidatingAdmissionPolicy, "a", "", spec=spec)
    await cluster.settle()
    question = ([("v1", "Pod"), ("apps/v1", "Deployment")], ["x.y/v1"])
    assert asked == [question]
    standing = await cluster.client.get(ValidatingAdmissionPolicy, "a")
    assert standing.status.observed_generation == 1
    assert standing.status.type_checking is not None
    assert [one.warning for one in standing.status.type_checking.expression_warnings] == ["w"]
    await cluster.client.patch(ValidatingAdmissionPolicy, "a", "", {"metadata": {"labels": {"a": "b"}}})
    await cluster.settle()
    assert asked == [question]
    await cluster.client.patch(
        ValidatingAdmissionPolicy, "a", "", {"spec": {"validations": [{"expression": "1 == 1"}]}}
    )
    await cluster.settle()
    assert asked == [question] * 2
    standing = await cluster.client.get(ValidatingAdmissionPolicy, "a")
    assert standing.status.observed_generation == 2
    assert standing.status.type_checking is not None
    assert standing.status.type_checking.expression_warnings == []
