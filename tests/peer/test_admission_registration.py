"""R-SYS-8: the kinds of admissionregistration.k8s.io are defaulted, validated, changed and shown as by
Kubernetes.

What the expressions of policies and webhooks may say is compared in `test_expressions.py`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import APPLY, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

GROUP = "/apis/admissionregistration.k8s.io/v1"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
LONG = "x" * 300
NOWHERE = {"namespaceSelector": {"matchLabels": {"nowhere": "x"}}}
"""For webhooks: a server that calls them would wait for them in all other tests."""
Changes = list[tuple[str, Any]]

CHECKED = re.compile(
    r"body\.((items|rows)\[\d+\]\.(object\.)?)?(status|metadata\.(managedFields|resourceVersion)).*"
)
"""What podling's controller writes of a policy: Kubernetes' is in another program, which does not run here
(`test_policy_types.py` compares them)."""


def made(kind: str, **fields: Any) -> dict[str, Any]:
    name = f"{kind.lower()}.example.test"
    api_version = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


RULE = {
    "operations": ["CREATE"],
    "apiGroups": ["example.test"],
    "apiVersions": ["v1"],
    "resources": ["gadgets"],
}
URL = {"url": "https://127.0.0.1:1/admit"}
SERVICE = {"service": {"namespace": "a", "name": "b"}}
WEBHOOK: dict[str, Any] = {
    "name": "a.example.test",
    "clientConfig": URL,
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [RULE],
    **NOWHERE,
}


def matching(path: str) -> Changes:
    """The fields of a rule, which webhooks and policies share."""
    return [
        *(
            (f"{path}.operations", value)
            for value in (GONE, [], [""], ["*"], ["*", "CREATE"], ["CREATE", "CREATE"], ["GET"], ["CONNECT"])
        ),
        (f"{path}.operations", ["UPDATE", "DELETE", "Odd", "odd"]),
        *(
            (f"{path}.apiGroups", value)
            for value in (GONE, [], [""], ["*"], ["*", "apps"], ["apps", "*"], ["No_Group"], ["a", "a"])
        ),
        *((f"{path}.apiVersions", value) for value in (GONE, [], [""], ["*"], ["*", "v1"], ["V_1"])),
        *(
            (f"{path}.resources", value)
            for value in (GONE, [], [""], ["*"], ["*/*"], ["*", "*/*"], ["*/*", "pods"], ["*", "pods"])
        ),
        *(
            (f"{path}.resources", value)
            for value in (
                ["pods/*", "pods/status"],
                ["pods/status", "pods/*"],
                ["*/scale", "deployments/scale"],
                ["*", "pods/status"],
                ["pods", "*"],
                ["pods", "*", "pods/log"],
                ["a/b/c", "a/*", "a/b/c"],
                ["pods", "pods"],
                ["/", "x/", "/y"],
            )
        ),
        *((f"{path}.scope", value) for value in (None, "", "*", "Cluster", "Namespaced", "Odd")),
    ]


def selectors(path: str) -> Changes:
    return [
        (path, None),
        (path, {}),
        (path, {"matchLabels": {"-": "a"}}),
        (path, {"matchLabels": {"a": "-"}}),
        (path, {"matchExpressions": [{"key": "a", "operator": "In"}]}),
        (path, {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}),
        (path, {"matchExpressions": [{"key": "", "operator": "Near", "values": ["b"]}]}),
    ]


def conditions(path: str) -> Changes:
    return [
        (path, []),
        *(
            (path, [{"name": name, "expression": "true"}])
            for name in ("", "a", "A.b", "a b", "x/y", "x/y/z", LONG)
        ),
        (path, [{"expression": "true"}]),
        (path, [{"name": "a"}]),
        (path, [{"name": "a", "expression": " "}]),
        (path, [{"name": "a", "expression": "true"}, {"name": "a", "expression": "false"}]),
        (path, [{}, {}]),
        (path, [{"name": f"n{i}", "expression": "true"} for i in range(64)]),
        (path, [{"name": f"n{i}", "expression": "true"} for i in range(65)]),
    ]


URLS: list[Any] = [
    "",
    "https://example.test",
    "http://example.test",
    "https://",
    "https:///path",
    "example.test",
    "https://user:password@example.test",
    "https://user@example.test/",
    "https://example.test/a?b=c",
    "https://example.test/a?",
    "https://example.test/a#b",
    "https://example.test/a#",
    "https://example.test:port/",
    "https://example.test:/",
    "https://[::1]:80/",
    "https://[::1/",
    "https://::1]/",
    "https://[fe80::1%25en0]/",
    "https://ex ample.test/",
    "https://example.test/%zz",
    "https://example.test/a b",
    "https://example.test/\u007f",
    "https://exa%41mple.test",
    "https://exa%2fmple.test",
    "HTTPS://EXAMPLE.test",
    "1https://example.test",
    ":https",
    "//example.test/a",
    "https:example.test",
    "https://a@b@example.test",
    "https://a:b:c@example.test",
    "https://us er@example.test",
    "https://example.test/é",
    "https://é.test/",
    "a:b:c",
    "a/b:c",
    "b:c/d#é%",
    "https://exa<mple.test",
    "https://example.test:-1/",
    "https://example.test:99999999/",
    " https://example.test",
    "https://example.test\n",
    "*",
]
WEBHOOKS: Changes = [
    ("webhooks", GONE),
    ("webhooks", []),
    ("webhooks", [{}]),
    ("webhooks", [WEBHOOK, WEBHOOK]),
    ("webhooks", [WEBHOOK, {**WEBHOOK, "name": "b.example.test"}]),
    *(
        ("webhooks.0.name", value)
        for value in (
            GONE,
            "",
            "a",
            "a.b",
            "a.b.c",
            "a.b.c.",
            "A.b.c",
            "a..b.c",
            ".a.b.c",
            LONG,
            "a_b.c.d",
            "a.b.c..",
        )
    ),
    ("webhooks.0.clientConfig", {}),
    ("webhooks.0.clientConfig", GONE),
    ("webhooks.0.clientConfig", {**URL, **SERVICE}),
    ("webhooks.0.clientConfig", SERVICE),
    *(("webhooks.0.clientConfig", {"url": value}) for value in URLS),
    *(("webhooks.0.clientConfig", {**SERVICE, "caBundle": value}) for value in ("", "YQ==", "?", None)),
    ("webhooks.0.clientConfig", {"service": {}}),
    *(
        ("webhooks.0.clientConfig", {"service": {**SERVICE["service"], "port": value}})
        for value in (None, 0, -1, 1, 443, 65535, 65536, "https")
    ),
    *(
        ("webhooks.0.clientConfig", {"service": {**SERVICE["service"], "path": value}})
        for value in (None, "", "/", "//", "a", "/a", "/a/", "a/b", "/a//b", "/A", "/a_b/c?d", "///", "/a/b/")
    ),
    *(
        ("webhooks.0.clientConfig", {"service": {**SERVICE["service"], name: value}})
        for name in ("name", "namespace")
        for value in ("", "No_Name")
    ),
    ("webhooks.0.rules", GONE),
    ("webhooks.0.rules", [{}]),
    *matching("webhooks.0.rules.0"),
    *(("webhooks.0.failurePolicy", value) for value in (None, "", "Ignore", "Fail", "Odd")),
    *(("webhooks.0.matchPolicy", value) for value in (None, "", "Exact", "Equivalent", "Odd")),
    *selectors("webhooks.0.objectSelector"),
    *selectors("webhooks.0.namespaceSelector")[2:],
    *(
        ("webhooks.0.sideEffects", value)
        for value in (GONE, "", "None", "NoneOnDryRun", "Some", "Unknown", "Odd")
    ),
    *(("webhooks.0.timeoutSeconds", value) for value in (None, 0, -1, 1, 30, 31, "1")),
    *(
        ("webhooks.0.admissionReviewVersions", value)
        for value in (
            GONE,
            [],
            [""],
            ["v1"],
            ["v1beta1"],
            ["v2"],
            ["v1", "v1"],
            ["v2", "v1", "v2"],
            ["V_1"],
            ["V_1", "v1"],
        )
    ),
    *conditions("webhooks.0.matchConditions"),
]
WEBHOOK_UPDATES: Changes = [
    ("webhooks", []),
    ("webhooks", [WEBHOOK]),
    ("webhooks", [WEBHOOK]),
    ("webhooks", [{**WEBHOOK, "timeoutSeconds": 31}]),
    ("webhooks", [{**WEBHOOK, "sideEffects": "Some"}]),
    ("webhooks", [{**WEBHOOK, "admissionReviewVersions": ["v3"]}]),
    ("webhooks", [WEBHOOK, WEBHOOK]),
    ("webhooks", [{**WEBHOOK, "objectSelector": {"matchLabels": {"a": "-"}}}]),
    ("webhooks", [{**WEBHOOK, "matchConditions": [{"name": "a", "expression": "true"}]}]),
    ("webhooks", [{**WEBHOOK, "matchConditions": [{"name": "a", "expression": ""}]}]),
    ("webhooks", None),
]
SERVED_RULE = {**RULE, "apiGroups": [""], "resources": ["configmaps"]}
MATCHED = {"resourceRules": [SERVED_RULE], "matchPolicy": "Exact", **NOWHERE}
VALIDATION = {"expression": "true"}
POLICY = made(
    "ValidatingAdmissionPolicy",
    spec={"failurePolicy": "Fail", "matchConstraints": MATCHED, "validations": [VALIDATION]},
)
OPERATIONS = "[JSONPatch{op: 'remove', path: '/data'}]"
PATCHED = {"patchType": "JSONPatch", "jsonPatch": {"expression": OPERATIONS}}
MUTATING_POLICY = made(
    "MutatingAdmissionPolicy",
    spec={
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": MATCHED,
        "mutations": [PATCHED],
    },
)


def match_resources(path: str) -> Changes:
    names: list[Any] = [None, [], [""], ["a"], ["a", "a"], ["a/b"], [".."], ["a%b", "."]]
    return [
        (path, None),
        (path, {}),
        *((f"{path}.matchPolicy", value) for value in (None, "", "Exact", "Equivalent", "Odd")),
        *selectors(f"{path}.objectSelector"),
        *selectors(f"{path}.namespaceSelector"),
        (f"{path}.resourceRules", []),
        (f"{path}.resourceRules", None),
        (f"{path}.resourceRules", [{}]),
        (f"{path}.excludeResourceRules", []),
        (f"{path}.excludeResourceRules", [RULE]),
        (f"{path}.excludeResourceRules", [{}]),
        *((f"{path}.excludeResourceRules", [{**RULE, "resourceNames": value}]) for value in names),
        *((f"{path}.resourceRules.0.resourceNames", value) for value in names),
        *matching(f"{path}.resourceRules.0"),
    ]


POLICY_SPEC: Changes = [
    ("spec", GONE),
    ("spec", {}),
    *(("spec.failurePolicy", value) for value in (GONE, "", "Ignore", "Fail", "Odd")),
    *(
        ("spec.paramKind", value)
        for value in (
            None,
            {},
            {"apiVersion": "v1", "kind": "ConfigMap"},
            {"apiVersion": "v1"},
            {"kind": "ConfigMap"},
            {"apiVersion": "/v1", "kind": "X"},
            {"apiVersion": "a/", "kind": "X"},
            {"apiVersion": "/", "kind": "X"},
            {"apiVersion": "a/b/c", "kind": "X"},
            {"apiVersion": "No_Group/v1", "kind": "X"},
            {"apiVersion": "example.test/V_1", "kind": "X"},
            {"apiVersion": "example.test/v1", "kind": "No_Kind"},
            {"apiVersion": "example.test/v1", "kind": "gadget"},
            {"apiVersion": "example.test/1v", "kind": "1Gadget"},
        )
    ),
    *match_resources("spec.matchConstraints"),
    *conditions("spec.matchConditions"),
    *(
        ("spec.variables", [{"name": name, "expression": "1"}])
        for name in ("", " ", "a", "A_1", "1a", "a-b", "a.b", "in", "for", "true", "é", "_", "object")
    ),
    ("spec.variables", []),
    ("spec.variables", [{}]),
    ("spec.variables", [{"name": "a"}]),
    ("spec.variables", [{"name": "a", "expression": " "}]),
    ("spec.variables", [{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]),
]
POLICY_CHANGES: Changes = [
    *POLICY_SPEC,
    ("spec.validations", []),
    ("spec.validations", GONE),
    ("spec.validations", [{}]),
    ("spec.validations", [VALIDATION, VALIDATION]),
    *(("spec.validations.0.expression", value) for value in (GONE, "", " ", " true", "true\n")),
    *(
        ("spec.validations.0.message", value)
        for value in ("", " ", "a", "a\nb", "\na\n", "a\rb", "\n", "x" * 6000, 5)
    ),
    *(("spec.validations.0.messageExpression", value) for value in ("", " ", "'a'", "'a' ")),
    ("spec.validations.0", {"expression": "true\n||\nfalse"}),
    ("spec.validations.0", {"expression": "true\n||\nfalse", "message": "a"}),
    *(
        ("spec.validations.0.reason", value)
        for value in (
            None,
            "",
            "Unauthorized",
            "Forbidden",
            "Invalid",
            "RequestEntityTooLarge",
            "NotFound",
            "Odd",
        )
    ),
    *(
        ("spec.auditAnnotations", [{"key": key, "valueExpression": "'x'"}])
        for key in ("", "a", "a.b", "a/b", "a b", "x" * 63, "x" * 64, LONG)
    ),
    ("spec.auditAnnotations", []),
    ("spec.auditAnnotations", [{}]),
    ("spec.auditAnnotations", [{"key": "a"}]),
    ("spec.auditAnnotations", [{"key": "a", "valueExpression": " "}]),
    ("spec.auditAnnotations", [{"key": "a", "valueExpression": "'a'"}] * 2),
    ("spec.auditAnnotations", [{"key": f"a{i}", "valueExpression": "'a'"} for i in range(20)]),
    ("spec.auditAnnotations", [{"key": f"a{i}", "valueExpression": "'a'"} for i in range(21)]),
    ("spec.auditAnnotations", [{"key": "a", "valueExpression": f"'{'x' * 5118}'"}]),
    ("spec.auditAnnotations", [{"key": "a", "valueExpression": f"'{'x' * 5119}'"}]),
    (
        "spec",
        {"matchConstraints": MATCHED, "auditAnnotations": [{"key": "a", "valueExpression": "'a'"}]},
    ),
    ("metadata.generation", 7),
    ("status", {"observedGeneration": 9}),
]
MUTATING_POLICY_CHANGES: Changes = [
    *POLICY_SPEC,
    *(("spec.reinvocationPolicy", value) for value in (GONE, "", "Never", "IfNeeded", "Odd")),
    ("spec.mutations", []),
    ("spec.mutations", GONE),
    ("spec.mutations", [{}]),
    ("spec.mutations", [PATCHED, PATCHED]),
    *(("spec.mutations.0.patchType", value) for value in (GONE, "", "ApplyConfiguration", "Odd")),
    *(
        ("spec.mutations", [value])
        for value in (
            {"patchType": "JSONPatch"},
            {"patchType": "JSONPatch", "jsonPatch": {}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": " "}},
            {"patchType": "ApplyConfiguration"},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": " "}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}},
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{}"},
                "jsonPatch": {"expression": OPERATIONS},
            },
            {
                "patchType": "JSONPatch",
                "applyConfiguration": {"expression": "Object{}"},
                "jsonPatch": {"expression": OPERATIONS},
            },
            {
                "patchType": "Odd",
                "applyConfiguration": {"expression": "Object{}"},
                "jsonPatch": {"expression": OPERATIONS},
            },
        )
    ),
]
PARAMETER = {"name": "p", "parameterNotFoundAction": "Deny"}
BINDING = made(
    "ValidatingAdmissionPolicyBinding",
    spec={"policyName": "absent.example.test", "validationActions": ["Deny"]},
)
MUTATING_BINDING = made("MutatingAdmissionPolicyBinding", spec={"policyName": "absent.example.test"})
RULED = {"matchPolicy": "Exact", "resourceRules": [RULE]}
BINDING_SPEC: Changes = [
    ("spec", GONE),
    ("spec", {}),
    *(("spec.policyName", value) for value in (GONE, "", "a", "No_Name", LONG)),
    ("spec.paramRef", None),
    ("spec.paramRef", {}),
    ("spec.paramRef", PARAMETER),
    *(("spec.paramRef", {**PARAMETER, "name": value}) for value in ("", "a/b", "..", "No_Name", "a%b", LONG)),
    *(("spec.paramRef", {**PARAMETER, "namespace": value}) for value in ("", "a", "No_Name")),
    *(
        ("spec.paramRef", {**PARAMETER, "parameterNotFoundAction": value})
        for value in (None, "", "Allow", "Odd")
    ),
    ("spec.paramRef", {**PARAMETER, "selector": {}}),
    *(
        ("spec.paramRef", {"parameterNotFoundAction": "Allow", "selector": value})
        for _, value in selectors("x")
    ),
    *(
        (path.replace("matchConstraints", "matchResources"), value)
        for path, value in match_resources("spec.matchConstraints")
        if "resourceRules.0" not in path
    ),
    ("spec.matchResources", {**RULED, "objectSelector": {}, "namespaceSelector": {}}),
]
BINDING_CHANGES: Changes = [
    *BINDING_SPEC,
    *(
        ("spec.validationActions", value)
        for value in (
            GONE,
            [],
            [""],
            ["Deny"],
            ["Warn"],
            ["Audit"],
            ["Odd"],
            ["Deny", "Warn"],
            ["Warn", "Deny", "Audit"],
            ["Deny", "Audit"],
            ["Audit", "Warn"],
            ["Audit", "Audit"],
            ["Odd", "Odd"],
        )
    ),
]
KINDS: dict[str, tuple[dict[str, Any], Changes, Changes]] = {
    "validatingwebhookconfigurations": (
        made("ValidatingWebhookConfiguration", webhooks=[WEBHOOK]),
        [*WEBHOOKS, ("webhooks.0.reinvocationPolicy", "Never")],
        WEBHOOK_UPDATES,
    ),
    "mutatingwebhookconfigurations": (
        made("MutatingWebhookConfiguration", webhooks=[WEBHOOK]),
        [
            *WEBHOOKS,
            *(("webhooks.0.reinvocationPolicy", value) for value in (None, "", "Never", "IfNeeded", "Odd")),
        ],
        [*WEBHOOK_UPDATES, ("webhooks", [{**WEBHOOK, "reinvocationPolicy": "Odd"}])],
    ),
    "validatingadmissionpolicies": (
        POLICY,
        POLICY_CHANGES,
        [
            ("spec.failurePolicy", "Ignore"),
            ("spec.failurePolicy", None),
            ("spec.validations", [{"expression": "false", "reason": "Odd"}]),
            ("spec.validations", [{"expression": "false", "message": "no"}]),
            ("spec.matchConditions", [{"name": "a", "expression": "true"}]),
            ("spec.matchConditions", [{"name": "", "expression": "true"}]),
            ("spec.matchConditions", [{"name": "a", "expression": "false"}]),
            ("spec.variables", [{"name": "a", "expression": "1"}]),
            ("spec.variables", [{"name": "1", "expression": "1"}]),
            ("spec.paramKind", {"apiVersion": "v1", "kind": "ConfigMap"}),
            ("spec.paramKind", {"apiVersion": "v1"}),
            ("spec.matchConstraints", None),
            ("spec.matchConstraints.resourceRules", []),
            ("status", {"observedGeneration": 5}),
        ],
    ),
    "mutatingadmissionpolicies": (
        MUTATING_POLICY,
        MUTATING_POLICY_CHANGES,
        [
            ("spec.failurePolicy", "Ignore"),
            ("spec.mutations", [{**PATCHED, "patchType": "Odd"}]),
            ("spec.mutations", [PATCHED, PATCHED]),
            ("spec.reinvocationPolicy", "IfNeeded"),
            ("spec.reinvocationPolicy", None),
            ("spec.reinvocationPolicy", "Odd"),
            ("spec.matchConditions", [{"name": "a", "expression": "true"}]),
            ("spec.matchConditions", [{"name": "", "expression": "true"}]),
            ("spec.paramKind", {"apiVersion": "v1", "kind": "ConfigMap"}),
            ("spec.matchConstraints", None),
        ],
    ),
    "validatingadmissionpolicybindings": (
        BINDING,
        BINDING_CHANGES,
        [
            ("spec.policyName", "b"),
            ("spec.policyName", "No_Name"),
            ("spec.validationActions", ["Warn"]),
            ("spec.validationActions", []),
            ("spec.paramRef", PARAMETER),
            ("spec.paramRef", {"name": None}),
            ("spec.paramRef", None),
            ("spec.matchResources", {"matchPolicy": "Odd"}),
        ],
    ),
    "mutatingadmissionpolicybindings": (
        MUTATING_BINDING,
        BINDING_SPEC,
        [
            ("spec.policyName", "b"),
            ("spec.policyName", "No_Name"),
            ("spec.paramRef", PARAMETER),
            ("spec.paramRef", {"name": None}),
            ("spec.paramRef", None),
            ("spec.matchResources", {"matchPolicy": "Odd"}),
        ],
    ),
}
META: Changes = [
    ("metadata.name", "No_Name"),
    ("metadata.name", "two--dashes"),
    ("metadata.name", LONG),
    ("metadata.labels", {"a": "-"}),
    ("metadata.namespace", "other"),
    ("unknown", 1),
]
UPDATES: Changes = [
    ("metadata.labels", {"x": "y"}),
    ("metadata.finalizers", ["example.test/nothing"]),
    ("metadata.finalizers", None),
    ("metadata.generation", 9),
    ("unknown", 1),
]
SHOWN: dict[str, Changes] = {
    "validatingwebhookconfigurations": [("webhooks", []), WEBHOOKS[4]],
    "mutatingwebhookconfigurations": [("webhooks", []), WEBHOOKS[4]],
    "validatingadmissionpolicies": [
        ("spec.paramKind", {"apiVersion": "v1", "kind": "ConfigMap"}),
        ("spec.validations", [VALIDATION, VALIDATION]),
    ],
    "mutatingadmissionpolicies": [
        ("spec.paramKind", {"apiVersion": "v1", "kind": "ConfigMap"}),
        ("spec.mutations", [PATCHED, PATCHED]),
    ],
    "validatingadmissionpolicybindings": [
        ("spec.paramRef", PARAMETER),
        ("spec.paramRef", {**PARAMETER, "namespace": "a"}),
        ("spec.paramRef", {"parameterNotFoundAction": "Allow", "selector": {"matchLabels": {"a": "b"}}}),
    ],
    "mutatingadmissionpolicybindings": [
        ("spec.paramRef", PARAMETER),
        ("spec.paramRef", {**PARAMETER, "namespace": "a"}),
    ],
}
MERGE = {"Content_Type": MERGE_PATCH}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


STATUSES: list[Any] = [
    {"observedGeneration": 1},
    {"observedGeneration": -1},
    {"typeChecking": {}},
    {"typeChecking": {"expressionWarnings": []}},
    {"typeChecking": {"expressionWarnings": [{}]}},
    {"typeChecking": {"expressionWarnings": [{"fieldRef": "a"}]}},
    {"typeChecking": {"expressionWarnings": [{"fieldRef": "spec.validations[0].expression"}]}},
    {"typeChecking": {"expressionWarnings": [{"fieldRef": "spec.validations[0]", "warning": "w"}]}},
    {"typeChecking": {"expressionWarnings": [{"fieldRef": "[", "warning": "w"}]}},
    {"typeChecking": {"expressionWarnings": [{"fieldRef": " ", "warning": " "}]}},
    {"conditions": [CONDITION]},
    {"conditions": [CONDITION, CONDITION]},
    {"conditions": [{**CONDITION, "status": "Odd"}]},
    {"conditions": [{**CONDITION, "reason": "-"}]},
    {"conditions": [{"type": "-"}]},
    {"conditions": [{**CONDITION, "observedGeneration": -1}]},
    {"conditions": None, "typeChecking": None},
]


def sequences() -> list[Compared]:
    found = []
    for plural, (base, changes, updates) in KINDS.items():
        target = f"{GROUP}/{plural}"
        name = base["metadata"]["name"]
        found += [
            Compared(f"{plural}: created", created(target, base, [*changes, *META])),
            Compared(f"{plural}: updated", updated(target, base, [*updates, *UPDATES])),
            Compared(f"{plural}: shown", in_tables(target, base, SHOWN[plural])),
            Compared(f"{plural}: put", [
                Ask("PUT", f"{target}/{name}", base),
                Ask("POST", target, base),
                Ask("POST", target, base),
                Ask("PUT", f"{target}/{name}", base),
                Ask("PUT", f"{target}/{name}", {**base, "metadata": {"name": name, "resourceVersion": "1"}}),
                Ask("PATCH", f"{target}/{name}?fieldManager=other", base, {"Content_Type": APPLY}),
                Ask("PATCH", f"{target}/{name}?fieldManager=other&force=true", base, {"Content_Type": APPLY}),
                Ask("GET", f"{target}/{name}/status"),
                Ask("GET", f"{target}/{name}/scale"),
                Ask("GET", f"{target}?fieldSelector=spec.policyName%3Da"),
                Ask("DELETE", f"{target}/{name}", {"propagationPolicy": "Foreground", "dryRun": ["All"]}),
                Ask("DELETE", f"{target}/{name}"),
                Ask("DELETE", f"{target}?labelSelector=nothing"),
            ]),
        ]  # fmt: skip
    return [*found, Compared("validatingadmissionpolicies: status", _status())]


def _status() -> list[Ask]:
    target = f"{GROUP}/validatingadmissionpolicies"
    place = f"{target}/{POLICY['metadata']['name']}"
    return [
        Ask("POST", target, POLICY),
        *(Ask("PATCH", f"{place}/status", {"status": status}, MERGE) for status in STATUSES),
        Ask("PATCH", f"{place}/status", {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}, MERGE),
        Ask("PATCH", f"{place}/status", {"spec": {"failurePolicy": "Odd"}}, MERGE),
        Ask("PATCH", f"{place}/status", {"metadata": {"finalizers": ["example.test/a"]}}, MERGE),
        Ask("PUT", f"{place}/status", {**POLICY, "status": {"observedGeneration": 4}}),
        Ask("GET", f"{place}/status"),
        Ask("POST", f"{place}/status", POLICY),
        Ask("PATCH", place, {"status": {"observedGeneration": 7}}, MERGE),
        Ask("PATCH", place, {"spec": {"failurePolicy": "Ignore"}}, MERGE),
        Ask("DELETE", place),
    ]  # fmt: skip


def in_tables(target: str, base: dict[str, Any], others: Changes) -> list[Ask]:
    shown = changed(base, "metadata.name", "shown.example.test")
    place = f"{target}/{base['metadata']['name']}"
    return [
        Ask("POST", target, base),
        Ask("GET", place, headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=metadata.name%3D{base['metadata']['name']}", headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=spec.x%3D0"),
        Ask("GET", f"{target}?labelSelector=x"),
        Ask("DELETE", place, {"propagationPolicy": "Background"}),
        Ask("GET", place),
        *created(target, shown, others),
        *(Ask("GET", f"{target}/shown.example.test-{i}", headers=TABLE) for i in range(len(others))),
    ]


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_admission_registration(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    if sequence.name.startswith("validatingadmissionpolicies"):
        found = [one for one in found if not CHECKED.fullmatch(one.path)]
    assert not found, f"\n{shown(sequence, found)}"
