"""R-SYS-8: admission policies decide as Kubernetes' do, and say so in the same words.

Policies take effect some time after they are written, so those of all cases are written first; each selects
by a label the objects that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

GROUP = "/apis/admissionregistration.k8s.io/v1"
EVALUATED = Path(__file__).with_name("evaluated.txt").read_text().splitlines()
AT_ONCE = 8
"""Expressions of one policy: more of its warnings would be cut."""
SHARED = "default"
"""The namespace of parameters."""
LABEL = "policy-of-test"
OBJECT: dict[str, Any] = {
    "metadata": {"name": "obj", "annotations": {"n": "1"}},
    "data": {"k": "v", "n": "12", "long": "aaaaaaaaab"},
}
TRIES = 600
MERGING = {"Content-Type": MERGE_PATCH}
LONG = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
"""It costs more than an expression may."""
CHECK = "authorizer.group('').resource('pods').check('get').allowed()"


class Case(msgspec.Struct, frozen=True):
    """One policy with its bindings and what is asked of it. `labeled`: whether objects are selected by the
    label of the case."""

    name: str
    spec: Mapping[str, Any]
    bindings: Sequence[Mapping[str, Any]]
    asks: Sequence[Ask]
    labeled: bool = True
    kind: str = "validating"


def rule(*resources: str, operations: Sequence[str] = ("*",), **more: Any) -> dict[str, Any]:
    return {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": list(resources),
        **more,
    }


def spec_of(case: Case) -> dict[str, Any]:
    operations = ["CREATE", "UPDATE"] if case.kind == "mutating" else ["*"]
    match = {
        "resourceRules": [rule("configmaps", operations=operations)],
        **case.spec.get("matchConstraints", {}),
    }
    if case.labeled:
        match["objectSelector"] = {"matchLabels": {LABEL: case.name}}
    else:
        match["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace_of(case)}}
    return {**case.spec, "matchConstraints": match}


def namespace_of(case: Case) -> str:
    return f"policy-{case.name}"


def config_map(case: str, **more: Any) -> dict[str, Any]:
    metadata = {**OBJECT["metadata"], "labels": {LABEL: case, "a": "b", "x-y": "z"}}
    return {**OBJECT, "metadata": metadata, **more}


def create(case: str, query: str = "", **more: Any) -> Ask:
    return Ask("POST", f"/api/v1/namespaces/{{ns}}/configmaps{query}", config_map(case, **more))


def of_validations() -> list[Case]:
    validations = {
        "true": {"expression": "true"},
        "false": {"expression": " object.data.k == 'w' "},
        "error": {"expression": "object.data.absent == 'w'"},
        "cost": {"expression": LONG},
        "message": {"expression": "false", "message": "  told  "},
        "expression": {"expression": "false", "messageExpression": "'is ' + object.data.k", "message": "no"},
        "failing": {
            "expression": "false",
            "messageExpression": "string(object.data.absent)",
            "message": "told",
        },
        "blank": {"expression": "false", "messageExpression": "'  '"},
        "lines": {"expression": "false", "messageExpression": "'a\\nb'", "message": "told"},
        "long": {"expression": "false", "messageExpression": "lists.range(6000).map(x, 'a').join()"},
        "check": {"expression": f"!{CHECK}"},
        "forbidden": {"expression": "false", "reason": "Forbidden", "message": "told"},
        "large": {"expression": "false", "reason": "RequestEntityTooLarge", "message": "told"},
        "invalid": {"expression": "false", "reason": "Invalid"},
    }
    made = []
    for name, validation in validations.items():
        for actions in (["Deny"], ["Warn"], ["Warn", "Audit"]):
            for policy in ("Fail", "Ignore"):
                case = f"v-{name}-{'-'.join(actions)}-{policy}".lower()
                spec = {"failurePolicy": policy, "validations": [validation]}
                asks = [create(case), create(case, "?dryRun=All")]
                made.append(Case(case, spec, [{"validationActions": actions}], asks))
    return made


def of_parts() -> list[Case]:
    deny = [{"validationActions": ["Deny"]}]
    fails = [{"expression": "false", "message": "told"}]
    specs: dict[str, dict[str, Any]] = {
        "several": {"validations": [{"expression": "true"}, *fails, {"expression": "object.x == 1"}]},
        "errors-first": {"validations": [{"expression": "object.x == 1"}, *fails]},
        "variable": {
            "variables": [{"name": "a", "expression": "object.data.k + 'x'"}],
            "validations": [{"expression": "variables.a == 'v'", "messageExpression": "string(variables.a)"}],
        },
        "composed": {
            "variables": [
                {"name": "a", "expression": "int(object.data.n)"},
                {"name": "b", "expression": "variables.a * 2"},
            ],
            "validations": [{"expression": "variables.b < 24", "messageExpression": "string(variables.b)"}],
        },
        "variable-fails": {
            "variables": [{"name": "a", "expression": "object.data.absent"}],
            "validations": [{"expression": "variables.a == 'v'"}],
        },
        "variable-unread": {
            "variables": [{"name": "a", "expression": "object.data.absent"}],
            "validations": [{"expression": "true || variables.a == 'v'"}],
        },
        "variable-costs": {
            "variables": [{"name": "a", "expression": LONG}],
            "validations": [{"expression": "variables.a"}],
        },
        "condition-true": {
            "matchConditions": [{"name": "a", "expression": "object.data.k == 'v'"}],
            "validations": fails,
        },
        "condition-false": {
            "matchConditions": [
                {"name": "a", "expression": "object.data.k == 'w'"},
                {"name": "b", "expression": "object.x == 1"},
            ],
            "validations": fails,
        },
        "condition-fails": {
            "matchConditions": [{"name": "a", "expression": "object.x == 1"}],
            "validations": fails,
        },
        "conditions-fail": {
            "matchConditions": [
                {"name": "a", "expression": " object.x == 1 "},
                {"name": "b", "expression": "object.y == 1"},
            ],
            "validations": fails,
        },
        "condition-ignored": {
            "failurePolicy": "Ignore",
            "matchConditions": [{"name": "a", "expression": "object.x == 1"}],
            "validations": fails,
        },
        "condition-costs": {
            "matchConditions": [{"name": n, "expression": LONG} for n in ("a", "b", "c")],
            "validations": fails,
        },
        "condition-checks": {
            "matchConditions": [{"name": "a", "expression": CHECK}],
            "validations": fails,
        },
        "annotation": {"auditAnnotations": [{"key": "a", "valueExpression": "string(object.data.k)"}]},
        "annotation-null": {"auditAnnotations": [{"key": "a", "valueExpression": "null"}]},
        "annotation-fails": {
            "auditAnnotations": [{"key": "a", "valueExpression": " string(object.data.x) "}]
        },
        "annotation-ignored": {
            "failurePolicy": "Ignore",
            "auditAnnotations": [{"key": "a", "valueExpression": "string(object.data.x)"}],
        },
        "annotation-checks": {
            "auditAnnotations": [
                {"key": "a", "valueExpression": "authorizer.path('/a').check('get').reason()"}
            ]
        },
        "annotation-and-denial": {
            "auditAnnotations": [{"key": "a", "valueExpression": "string(object.data.x)"}],
            "validations": fails,
        },
        "request": {
            "validations": [
                {
                    "expression": "false",
                    "messageExpression": "request.operation + request.kind.kind + "
                    "request.resource.resource + string(request.dryRun) + request.options.kind",
                }
            ]
        },
        "namespace": {
            "validations": [
                {"expression": "false", "messageExpression": "namespaceObject.metadata.name.substring(0, 4)"}
            ]
        },
        "name": {
            "matchConstraints": {"resourceRules": [rule("configmaps", resourceNames=["obj"])]},
            "validations": fails,
        },
        "other-name": {
            "matchConstraints": {"resourceRules": [rule("configmaps", resourceNames=["x"])]},
            "validations": fails,
        },
        "excluded": {
            "matchConstraints": {"excludeResourceRules": [rule("configmaps")]},
            "validations": fails,
        },
        "of-namespaces": {
            "matchConstraints": {"namespaceSelector": {"matchLabels": {"no": "such"}}},
            "validations": fails,
        },
        "of-cluster": {
            "matchConstraints": {"resourceRules": [rule("*", scope="Cluster")]},
            "validations": fails,
        },
        "of-all": {
            "matchConstraints": {"resourceRules": [rule("*/*", scope="Namespaced")]},
            "validations": fails,
        },
    }
    cases = [Case(name, spec, deny, [create(name)]) for name, spec in specs.items()]
    two = [{"validationActions": ["Warn"]}, {"validationActions": ["Deny"]}]
    cases.append(Case("two-bindings", {"validations": fails}, two, [create("two-bindings")]))
    narrow = [
        {"validationActions": ["Deny"], "matchResources": {"resourceRules": [rule("secrets")]}},
        {"validationActions": ["Warn"], "matchResources": {"resourceRules": [rule("configmaps")]}},
    ]
    cases.append(Case("narrow-bindings", {"validations": fails}, narrow, [create("narrow-bindings")]))
    return cases


def of_parameters() -> list[Case]:
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [
            {
                "expression": "params.data.most == object.data.k",
                "messageExpression": "string(params.metadata.name)",
            }
        ],
    }
    kind = {"expression": "params.kind == 'ConfigMap' && params.apiVersion == 'v1' && params == null"}
    unset = {"paramKind": spec["paramKind"], "validations": [{"expression": "params != null"}]}
    refs: dict[str, tuple[Any, Any]] = {
        "found": (spec, {"name": "param-1", "namespace": SHARED, "parameterNotFoundAction": "Deny"}),
        "kind": (
            {**spec, "validations": [kind]},
            {"name": "param-1", "namespace": SHARED, "parameterNotFoundAction": "Deny"},
        ),
        "absent": (spec, {"name": "no", "namespace": SHARED, "parameterNotFoundAction": "Deny"}),
        "absent-allowed": (spec, {"name": "no", "namespace": SHARED, "parameterNotFoundAction": "Allow"}),
        "absent-ignored": (
            {**spec, "failurePolicy": "Ignore"},
            {"name": "no", "namespace": SHARED, "parameterNotFoundAction": "Deny"},
        ),
        "here": (spec, {"name": "param-1", "parameterNotFoundAction": "Deny"}),
        "selected": (
            spec,
            {
                "selector": {"matchLabels": {"param": "one"}},
                "namespace": SHARED,
                "parameterNotFoundAction": "Deny",
            },
        ),
        "none-selected": (
            spec,
            {
                "selector": {"matchLabels": {"param": "no"}},
                "namespace": SHARED,
                "parameterNotFoundAction": "Deny",
            },
        ),
        "unset": (unset, None),
        "no-kind": (
            {"validations": [{"expression": "false"}]},
            {"name": "no", "parameterNotFoundAction": "Deny"},
        ),
        "cluster": (
            {**spec, "paramKind": {"apiVersion": "v1", "kind": "Namespace"}},
            {"name": "default", "parameterNotFoundAction": "Deny"},
        ),
        "cluster-namespaced": (
            {**spec, "paramKind": {"apiVersion": "v1", "kind": "Namespace"}},
            {"name": "default", "namespace": SHARED, "parameterNotFoundAction": "Deny"},
        ),
        "unknown": (
            {**spec, "paramKind": {"apiVersion": "example.com/v1", "kind": "Absent"}},
            {"name": "x", "namespace": SHARED, "parameterNotFoundAction": "Deny"},
        ),
    }
    made = []
    for name, (policy, ref) in refs.items():
        case = f"param-{name}"
        binding = {"validationActions": ["Deny"]} if ref is None else {
            "validationActions": ["Deny"], "paramRef": ref
        }  # fmt: skip
        asks = [create(case), create(case, "?dryRun=All", data={"k": "1"})]
        made.append(Case(case, policy, [binding], asks))
    return made


def of_operations() -> list[Case]:
    """What is written otherwise than by a creation, and what is not a whole object."""
    told = {
        "expression": "false",
        "messageExpression": "'%s %s %s %s %s %s %s'.format([request.operation, request.kind.kind, "
        "request.?subResource.orValue('-'), request.name, object == null, oldObject == null, "
        "request.?options.?kind.orValue('-')])",
    }
    one = "/api/v1/namespaces/{ns}/configmaps/obj"
    pods = "/api/v1/namespaces/{ns}/pods"
    pod = {
        "metadata": {"name": "p", "labels": {LABEL: "{case}"}},
        "spec": {
            "containers": [{"name": "a", "image": "b"}],
            "automountServiceAccountToken": False,
        },
    }
    deployment = {
        "metadata": {"name": "d", "labels": {LABEL: "{case}"}},
        "spec": {
            "selector": {"matchLabels": {"x": "y"}},
            "template": {"metadata": {"labels": {"x": "y"}}, "spec": pod["spec"]},
        },
    }
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
    debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "b"}]}}
    deployments = "/apis/apps/v1/namespaces/{ns}/deployments"
    changed: dict[str, tuple[dict[str, Any], list[Ask]]] = {
        "update": (
            rule("configmaps", operations=["UPDATE"]),
            [
                create("{case}"),
                Ask("PATCH", one, {"data": {"k": "w"}}, MERGING),
                Ask("PUT", one, config_map("{case}", data={"k": "x"})),
                Ask("DELETE", one),
            ],
        ),
        "delete": (
            rule("configmaps", operations=["DELETE"]),
            [
                create("{case}"),
                Ask("PATCH", one, {"data": {"k": "w"}}, MERGING),
                Ask("DELETE", one, {"gracePeriodSeconds": 0}),
            ],
        ),
        "ephemeral": (
            rule("pods/ephemeralcontainers"),
            [
                Ask("POST", pods, pod),
                Ask("PATCH", f"{pods}/p/ephemeralcontainers", debug, MERGING),
            ],
        ),
        "status": (
            rule("pods/status"),
            [
                Ask("POST", pods, pod),
                Ask("PATCH", f"{pods}/p/status", {"status": {"reason": "x"}}, MERGING),
            ],
        ),
        "scale": (
            rule("deployments/scale"),
            [
                Ask("POST", deployments, deployment),
                Ask("PATCH", f"{deployments}/d/scale", {"spec": {"replicas": 2}}, MERGING),
            ],
        ),
        "deployments": (
            rule("deployments"),
            [Ask("POST", deployments, deployment)],
        ),
        "eviction": (
            rule("pods/eviction"),
            [
                Ask("POST", pods, pod),
                Ask(
                    "POST",
                    f"{pods}/p/eviction",
                    {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}},
                ),
            ],
        ),
        "connect": (
            rule("*/*", operations=["CONNECT"]),
            [
                Ask("POST", pods, pod),
                *(
                    Ask(method, f"{pods}/p/{what}")
                    for method, what in (
                        ("POST", "exec?command=a&command=b&stdout=true"),
                        ("POST", "attach?stdin=true&tty=true&container=a"),
                        ("POST", "portforward?ports=80&ports=81"),
                        ("GET", "proxy"),
                        ("GET", "proxy/a/b?c=d"),
                        ("DELETE", "proxy/a"),
                    )
                ),
                Ask("POST", "/api/v1/namespaces/{ns}/services", service),
                Ask("GET", "/api/v1/namespaces/{ns}/services/s/proxy/a"),
                Ask("GET", "/api/v1/namespaces/{ns}/services/http:s:x/proxy/"),
                Ask("GET", f"{pods}/p/log"),
            ],
        ),
        "collection": (
            rule("configmaps", operations=["DELETE"]),
            [
                create("{case}"),
                Ask("DELETE", "/api/v1/namespaces/{ns}/configmaps?dryRun=All"),
                Ask("DELETE", "/api/v1/namespaces/{ns}/configmaps", {"gracePeriodSeconds": 3}),
                Ask("GET", "/api/v1/namespaces/{ns}/configmaps/obj?labelSelector=a"),
                Ask("DELETE", "/api/v1/namespaces/{ns}/configmaps?labelSelector=no%3Dsuch"),
            ],
        ),
        "binding": (
            rule("pods/binding"),
            [
                Ask("POST", pods, pod),
                Ask("POST", f"{pods}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}),
            ],
        ),
    }  # fmt: skip
    made = []
    for name, (about, asks) in changed.items():
        for policy in ("Fail", "Ignore"):
            case = f"on-{name}-{policy}".lower()
            spec = {
                "failurePolicy": policy,
                "matchConstraints": {"resourceRules": [about]},
                "validations": [told],
            }
            placed = [_of_case(ask, case) for ask in asks]
            labeled = name in ("update", "delete", "collection", "deployments", "ephemeral", "status")
            made.append(Case(case, spec, [{"validationActions": ["Deny"]}], placed, labeled))
    return made


def _of_case(ask: Ask, case: str) -> Ask:
    body = msgspec.json.decode(msgspec.json.encode(ask.body).replace(b"{case}", case.encode()))
    return msgspec.structs.replace(ask, body=body)


def of_mutations() -> list[Case]:
    label = "[JSONPatch{op: 'add', path: '/metadata/labels/added', value: object.data.k}]"
    wrong = "Object{metadata: Object.metadata{labels: Object.metadata.wrong{added: 'x'}}}"
    condition = {"name": "a", "expression": "object.x == 1"}
    absent = {"name": "no", "namespace": SHARED, "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    patches = {
        "added": label,
        "tested": "[JSONPatch{op: 'test', path: '/data/k', value: 'w'}, "
        "JSONPatch{op: 'remove', path: '/data'}]",
        "object": "[JSONPatch{op: 'add', path: '/data', value: Object.data{a: 'b'}}]",
        "mistyped": "[JSONPatch{op: 'add', path: '/data', value: Object.wrong{a: Object.x{b: 1}}}]",
        "unknown": "[JSONPatch{op: 'add', path: '/foo', value: 1}]",
        "number": "[JSONPatch{op: 'add', path: '/data/x', value: 1}]",
        "operation": "[JSONPatch{op: 'foo', path: '/data'}]",
        "fails": "[JSONPatch{op: 'add', path: '/data/x', value: object.data.absent}]",
        "invalid": "[JSONPatch{op: 'add', path: '/metadata/labels/added', value: 'not a label'}]",
    }
    specs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        name: (json_patch(text), {}) for name, text in patches.items()
    }
    specs |= {
        "applied-mistyped": (applied(wrong), {}),
        "applied-fails": (applied("Object{data: Object.data{k: object.data.absent}}"), {}),
        "condition": ({**json_patch(label), "matchConditions": [condition]}, {}),
        "two-conditions": (
            {
                **json_patch(label),
                "matchConditions": [condition, {"name": "b", "expression": "object.y == 1"}],
            },
            {},
        ),
        "condition-false": (
            {**json_patch(label), "matchConditions": [{"name": "a", "expression": "false"}]},
            {},
        ),
        "ignored": ({**json_patch(patches["fails"]), "failurePolicy": "Ignore"}, {}),
        "variable": (
            {
                **json_patch("[JSONPatch{op: 'add', path: '/data/v', value: variables.v}]"),
                "variables": [{"name": "v", "expression": "object.data.k + 'x'"}],
            },
            {},
        ),
        "param": ({**json_patch(label), "paramKind": kind}, {"paramRef": absent}),
        "param-kind": (
            {**json_patch(label), "paramKind": {"apiVersion": "example.com/v1", "kind": "Absent"}},
            {"paramRef": absent},
        ),
        "param-found": (
            {
                **json_patch("[JSONPatch{op: 'add', path: '/data/most', value: params.data.most}]"),
                "paramKind": kind,
            },
            {"paramRef": {**absent, "name": "param-1"}},
        ),
    }
    return [
        Case(
            f"m-{name}",
            {"reinvocationPolicy": "Never", **spec},
            [binding],
            [create(f"m-{name}", "?dryRun=All")],
            kind="mutating",
        )
        for name, (spec, binding) in specs.items()
    ]


def json_patch(expression: str) -> dict[str, Any]:
    return {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]}


def applied(expression: str) -> dict[str, Any]:
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    return {"mutations": [mutation]}


CASES = [*of_mutations(), *of_validations(), *of_parts(), *of_parameters(), *of_operations()]


def write(
    server: Server,
    name: str,
    spec: Mapping[str, Any],
    bindings: Sequence[Mapping[str, Any]],
    kind: str = "validating",
) -> None:
    policy = {"metadata": {"name": name}, "spec": spec}
    made = server.ask("POST", f"{GROUP}/{kind}admissionpolicies", policy)
    assert made.code == 201, (server.name, name, made.body["message"])
    for index, binding in enumerate(bindings):
        body = {"metadata": {"name": f"{name}-{index}"}, "spec": {"policyName": name, **binding}}
        made = server.ask("POST", f"{GROUP}/{kind}admissionpolicybindings", body)
        assert made.code == 201, (server.name, name, made.body["message"])


def until_in_effect(server: Server) -> None:
    """Returns once a policy that is written last decides."""
    write(
        server,
        "last",
        spec_of(Case("last", {"validations": [{"expression": "false"}]}, [], [])),
        [{"validationActions": ["Deny"]}],
    )
    target = f"/api/v1/namespaces/{SHARED}/configmaps?dryRun=All"
    for _ in range(TRIES):
        if server.ask("POST", target, config_map("last")).code == 422:
            return
    raise AssertionError(f"{server.name} never heard of the policies")


@pytest.fixture(scope="module")
def _policies(kubernetes: Server, podling: Server) -> None:
    for server in (kubernetes, podling):
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": SHARED}})
        for number in (1, 2):
            metadata = {"name": f"param-{number}", "labels": {"param": ("one", "two")[number - 1]}}
            body = {"metadata": metadata, "data": {"most": str(number)}}
            server.ask("POST", f"/api/v1/namespaces/{SHARED}/configmaps", body)
        for case in CASES:
            write(server, case.name, spec_of(case), case.bindings, case.kind)
        for index, expressions in enumerate(batches()):
            name = f"evaluated-{index}"
            validations = [showing(i, one) for i, one in enumerate(expressions)]
            spec = {"variables": [{"name": "v", "expression": "1"}], "validations": validations}
            case = Case(name, spec, [{"validationActions": ["Warn"]}], [])
            write(server, name, spec_of(case), case.bindings)
        until_in_effect(server)


@pytest.mark.usefixtures("_policies")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_policy_decides_as_by_kubernetes(case: Case, kubernetes: Server, podling: Server) -> None:
    compared = Compared(case.name, case.asks, apart=True)
    found = differences(compared, namespace_of(case), kubernetes, podling)
    assert not found, shown(compared, found)


def batches() -> list[list[str]]:
    return [EVALUATED[at : at + AT_ONCE] for at in range(0, len(EVALUATED), AT_ONCE)]


def showing(index: int, expression: str) -> dict[str, str]:
    """A validation that fails, and tells what the expression evaluates to."""
    if "authorizer" in expression:
        # Messages cannot name it.
        return {"expression": f"[dyn({expression})].exists(x, x == true)", "message": f"#{index} false"}
    return {
        "expression": f"[dyn({expression})].exists(x, false)",
        "messageExpression": f"'#{index} %s %s'.format([type(dyn({expression})), dyn({expression})])",
        "message": f"#{index} a value that no message can show",
    }


def values(server: Server, name: str, expressions: Sequence[str]) -> dict[str, str]:
    """What each evaluates to, or its error; nothing for an authorization that is given."""
    target = f"/api/v1/namespaces/{SHARED}/configmaps?dryRun=All"
    answer = server.ask("POST", target, config_map(name))
    told = answer.headers.get("Warning", "").encode("latin-1").decode()
    found = {}
    for quoted in re.findall(r'299 - "((?:[^"\\]|\\.)*)"', told):
        text = re.sub(r"\\(.)", r"\1", quoted).partition("': ")[2]
        if numbered := re.match(r"#(\d+) ", text):
            found[expressions[int(numbered[1])]] = text[numbered.end() :]
        for one in expressions:
            if text.startswith(f"expression '[dyn({one})]"):
                found[one] = text.partition(" resulted in error: ")[2]
    return found


@pytest.mark.usefixtures("_policies")
@pytest.mark.parametrize("index", range(len(batches())))
def test_expressions_evaluate_as_by_kubernetes(index: int, kubernetes: Server, podling: Server) -> None:
    expressions = batches()[index]
    name = f"evaluated-{index}"
    theirs, ours = (values(server, name, expressions) for server in (kubernetes, podling))
    assert ours == theirs
