"""R-SYS-4: webhooks are asked, and answered to, as by Kubernetes: the reviews that one real server gets from
both are equal, and so are the answers to clients, also where the webhook misbehaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from peer.named_differences import names_of, unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, shown
from peer.server import Server
from peer.webhooks import ALLOWED, Hook, Hooked, Listener, Raw, listening, outcome, unlike_outcomes
from podling.machine.pki import Authority

NS = "/api/v1/namespaces/{ns}"
APPS = "/apis/apps/v1/namespaces/{ns}"
SCALERS = "/apis/autoscaling/{version}/namespaces/{ns}/horizontalpodautoscalers"
MERGE = {"Content_Type": MERGE_PATCH}
STRATEGIC = {"Content_Type": STRATEGIC_PATCH}
APPLIED = {"Content_Type": APPLY}

CM = Ask(
    "POST", f"{NS}/configmaps", {"metadata": {"name": "m", "labels": {"app": "web"}}, "data": {"a": "b"}}
)
CM_PATH = f"{NS}/configmaps/m"
POD = Ask("POST", f"{NS}/pods", {
    "metadata": {"name": "p", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False},
})  # fmt: skip
DEBUG = Ask(
    "PATCH",
    f"{NS}/pods/p/ephemeralcontainers",
    {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", "stdin": True, "tty": True}]}},
    STRATEGIC,
)
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = Ask("POST", f"{APPS}/deployments", {
    "metadata": {"name": "d"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
})  # fmt: skip
SCALER = {"metadata": {"name": "h"}, "spec": {
    "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
}}  # fmt: skip
BOUND = {"metadata": {"name": "p"}, "target": {"name": "n"}}

REVIEW = (
    '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"{uid}","allowed":true}}'
)
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ADDED = [{"op": "add", "path": "/data/x", "value": "y"}]
COPIES = [
    {"op": "add", "path": "/data/x", "value": "x" * 60_000},
    *({"op": "copy", "from": "/data", "path": f"/data/{name}"} for name in "abcdefgh"),
]
"""Each as large as all before together."""
DENIED = {"allowed": False}
BOTH = ("mutating", "validating")


def patched(body: Any, path: str = CM_PATH, **headers: Any) -> Ask:
    return Ask("PATCH", path, body, headers or MERGE)


def labelled(key: str, value: str) -> list[dict[str, str]]:
    return [{"op": "add", "path": f"/metadata/labels/{key}", "value": value}]


def all_of(resources: Sequence[str]) -> list[Hook]:
    return [Hook(resources, sort=sort) for sort in BOTH]


def told(name: str, *asks: Ask, resources: Sequence[str] = ("*/*",), before: Sequence[Ask] = ()) -> Hooked:
    """What both sorts of webhooks are told, which allow it."""
    return Hooked(name, all_of(resources), asks, before)


def answered(name: str, response: Any = ALLOWED, *asks: Ask, **fields: Any) -> Hooked:
    """One webhook answers like this to a new object."""
    return Hooked(name, [Hook(["configmaps"], response, **fields)], asks or (CM,))


def changed(name: str, patch: Any, *asks: Ask, before: Sequence[Ask] = (), **fields: Any) -> Hooked:
    return Hooked(name, [Hook(["configmaps"], patch=patch, **fields)], asks or (CM,), before)


def fields(**fields: Any) -> dict[str, Any]:
    return {"fields": fields}


OPERATIONS = (
    told("create", CM),
    told(
        "create a pod with a status of its own",
        Ask("POST", f"{NS}/pods", {**POD.body, "status": {"phase": "Running"}}),
    ),
    told(
        "create by a generated name",
        Ask("POST", f"{NS}/configmaps", {"metadata": {"generateName": "generated-"}}),
    ),
    told(
        "create with options",
        Ask(
            "POST", f"{NS}/configmaps?fieldManager=me&fieldValidation=Strict&dryRun=All&pretty=true", CM.body
        ),
    ),
    told("create what is there", CM, before=[CM]),
    told(
        "create what is not valid",
        Ask("POST", f"{NS}/configmaps", {"metadata": {"name": "m"}, "data": {"a b": ""}}),
    ),
    told("replace", Ask("PUT", CM_PATH, {"metadata": {"name": "m"}, "data": {"a": "c"}}), before=[CM]),
    told("replace nothing", Ask("PUT", CM_PATH, {"metadata": {"name": "m"}})),
    told(
        "replace another version",
        Ask("PUT", CM_PATH, {"metadata": {"name": "m", "resourceVersion": "1"}}),
        before=[CM],
    ),
    told("replace another uid", Ask("PUT", CM_PATH, {"metadata": {"name": "m", "uid": "x"}}), before=[CM]),
    told(
        "replace the status with the object",
        Ask("PUT", f"{NS}/pods/p", {**POD.body, "status": {"phase": "Failed"}}),
        before=[POD],
    ),
    told(
        "create by PUT",
        Ask(
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l",
            {"metadata": {"name": "l"}, "spec": {}},
        ),
    ),
    told("merge patch", patched({"data": {"a": "c"}}), before=[CM]),
    told("merge patch that changes nothing", patched({"data": {"a": "b"}}), before=[CM]),
    told("strategic patch", patched({"data": {"a": "c"}}, **STRATEGIC), before=[CM]),
    told("json patch", patched(ADDED, Content_Type=JSON_PATCH), before=[CM]),
    told("patch nothing", patched({"data": {"a": "c"}})),
    told(
        "apply",
        *(
            patched(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ap"}, "data": {"a": value}},
                f"{NS}/configmaps/ap?fieldManager=z&force=true",
                **APPLIED,
            )
            for value in "bc"
        ),
    ),
    told("delete", Ask("DELETE", CM_PATH), before=[CM]),
    told(
        "delete with options",
        Ask(
            "DELETE", CM_PATH, {"gracePeriodSeconds": 0, "propagationPolicy": "Foreground", "dryRun": ["All"]}
        ),
        before=[CM],
    ),
    told(
        "delete with options in the query",
        Ask("DELETE", f"{CM_PATH}?gracePeriodSeconds=3&propagationPolicy=Orphan"),
        before=[CM],
    ),
    told("delete nothing", Ask("DELETE", CM_PATH)),
    told("delete a pod", Ask("DELETE", f"{NS}/pods/p"), before=[POD]),
    told(
        "delete all",
        Ask("DELETE", f"{NS}/configmaps?labelSelector=app%3Dweb", {"gracePeriodSeconds": 0}),
        before=[
            CM,
            Ask("POST", f"{NS}/configmaps", {"metadata": {"name": "n", "labels": {"app": "web"}}}),
            Ask("POST", f"{NS}/configmaps", {"metadata": {"name": "o"}}),
        ],
    ),
    told("read", Ask("GET", CM_PATH), Ask("GET", f"{NS}/configmaps"), before=[CM]),
    told("status", patched({"status": {"phase": "Running"}}, f"{NS}/pods/p/status"), before=[POD]),
    told("ephemeral containers", DEBUG, before=[POD]),
    told(
        "resize",
        patched(
            {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}},
            f"{NS}/pods/p/resize",
            **STRATEGIC,
        ),
        before=[POD],
    ),
    told("binding", Ask("POST", f"{NS}/pods/p/binding", BOUND), before=[POD]),
    told("binding by its older path", Ask("POST", f"{NS}/bindings", BOUND), before=[POD]),
    told(
        "binding by its older path is none of a pod",
        Ask("POST", f"{NS}/bindings", BOUND),
        before=[POD],
        resources=["pods/binding"],
    ),
    told("eviction", Ask("POST", f"{NS}/pods/p/eviction", {"metadata": {"name": "p"}}), before=[POD]),
    told("eviction of nothing", Ask("POST", f"{NS}/pods/none/eviction", {"metadata": {"name": "none"}})),
    told(
        "eviction with options",
        Ask(
            "POST",
            f"{NS}/pods/p/eviction",
            {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 1}},
        ),
        before=[POD],
    ),
    told("token", Ask("POST", f"{NS}/serviceaccounts/default/token", {"spec": {"audiences": ["a"]}})),
    told(
        "scale by PUT",
        Ask("PUT", f"{APPS}/deployments/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 2}}),
        before=[DEPLOYMENT],
    ),
    told(
        "scale by patch",
        patched({"spec": {"replicas": 3}}, f"{APPS}/deployments/d/scale"),
        before=[DEPLOYMENT],
    ),
    told(
        "scale is applied",
        Ask(
            "PATCH",
            f"{APPS}/deployments/d/scale?fieldManager=m&force=true",
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 0}},
            {"Content_Type": APPLY},
        ),
        before=[DEPLOYMENT],
    ),
    told(
        "exec",
        Ask("GET", f"{NS}/pods/p/exec?command=ls&command=-l&stdin=true&container=c&tty=false"),
        before=[POD],
    ),
    told("attach", Ask("POST", f"{NS}/pods/p/attach?stdin=true&stdout=1"), before=[POD]),
    told("port-forward", Ask("POST", f"{NS}/pods/p/portforward?ports=80"), before=[POD]),
    told("proxy of a pod", Ask("GET", f"{NS}/pods/p/proxy/a/b?x=y"), before=[POD]),
    told("exec of nothing", Ask("GET", f"{NS}/pods/none/exec?command=ls")),
    told("log", Ask("GET", f"{NS}/pods/p/log"), before=[POD]),
    told(
        "a namespace is changed", patched({"metadata": {"labels": {"x": "y"}}}, NS), resources=["namespaces"]
    ),
    told(
        "a Deployment",
        DEPLOYMENT,
        patched({"spec": {"replicas": 0}}, f"{APPS}/deployments/d"),
        Ask("DELETE", f"{APPS}/deployments/d"),
    ),
    told(
        "a Secret, a Service and an account",
        Ask("POST", f"{NS}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        Ask(
            "POST",
            f"{NS}/services",
            {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
        ),
        Ask("POST", f"{NS}/serviceaccounts", {"metadata": {"name": "s"}}),
    ),
    told(
        "a claim",
        Ask(
            "POST",
            f"{NS}/persistentvolumeclaims",
            {
                "metadata": {"name": "s"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        ),
    ),
)

MATCHING = (
    Hooked("another resource", all_of(["secrets"]), [CM]),
    Hooked("no subresource", all_of(["pods"]), [DEBUG], [POD]),
    Hooked("only the subresource", all_of(["pods/ephemeralcontainers"]), [POD, DEBUG]),
    Hooked("any subresource", all_of(["pods/*"]), [POD, DEBUG]),
    Hooked("another operation", [Hook(["*"], operations=["DELETE"])], [CM, Ask("DELETE", CM_PATH)]),
    Hooked("another group", [Hook(["*"], rule={"apiGroups": ["apps"]})], [CM, DEPLOYMENT]),
    Hooked("another version", [Hook(["*"], rule={"apiVersions": ["v2"]})], [CM]),
    Hooked("a scope", [Hook(["*"], rule={"scope": scope}) for scope in ("Cluster", "Namespaced")], [CM]),
    Hooked(
        "a selector that holds",
        [Hook(["*"], fields={"objectSelector": {"matchLabels": {"app": "web"}}})],
        [CM, Ask("DELETE", CM_PATH)],
    ),
    Hooked(
        "a selector that does not hold",
        [Hook(["*"], fields={"objectSelector": {"matchLabels": {"app": "x"}}})],
        [CM],
    ),
    Hooked(
        "a selector that held before",
        [Hook(["*"], fields={"objectSelector": {"matchLabels": {"app": "web"}}})],
        [patched({"metadata": {"labels": {"app": None}}}), patched({"data": {"a": "d"}})],
        [CM],
    ),
    Hooked(
        "a selector of a connection",
        [Hook(["pods/exec"], fields={"objectSelector": {"matchLabels": {"app": "web"}}})],
        [Ask("GET", f"{NS}/pods/p/exec?command=ls")],
        [POD],
    ),
    Hooked(
        "the same in another version",
        [
            Hook(
                ["horizontalpodautoscalers"],
                sort=sort,
                rule={"apiGroups": ["autoscaling"], "apiVersions": ["v2"]},
            )
            for sort in BOTH
        ],
        [Ask("POST", SCALERS.replace("{version}", "v1"), SCALER)],
    ),
    Hooked(
        "the same in the older version",
        [Hook(["horizontalpodautoscalers"], rule={"apiGroups": ["autoscaling"], "apiVersions": ["v1"]})],
        [Ask("POST", SCALERS.replace("{version}", "v2"), SCALER)],
    ),
    Hooked(
        "exactly",
        [
            Hook(
                ["horizontalpodautoscalers"],
                rule={"apiGroups": ["autoscaling"], "apiVersions": ["v2"]},
                fields={"matchPolicy": "Exact"},
            )
        ],
        [Ask("POST", SCALERS.replace("{version}", "v1"), SCALER)],
    ),
    Hooked(
        "several that are in order",
        [Hook(["*"], patch=labelled(name, "x")) for name in "abc"] + [Hook(["*"], sort="validating")],
        [CM],
    ),
    Hooked("the first refusal ends it", [Hook(["*"]), Hook(["*"], DENIED), Hook(["*"])], [CM]),
    Hooked(
        "all that validate are asked",
        [Hook(["*"], sort="validating"), Hook(["*"], DENIED, "validating"), Hook(["*"], sort="validating")],
        [CM],
    ),
    Hooked(
        "none is asked about what a refusal ended",
        [Hook(["*"], DENIED), Hook(["*"], sort="validating")],
        [CM, Ask("GET", CM_PATH)],
    ),
    Hooked(
        "the debugger is refused",
        [
            Hook(
                ["pods/ephemeralcontainers"],
                {
                    "allowed": False,
                    "status": {"message": "not in this house", "code": 403, "reason": "Forbidden"},
                },
                "validating",
            )
        ],
        [DEBUG, Ask("GET", f"{NS}/pods/p")],
        [POD],
    ),
    Hooked(
        "an eviction is refused",
        [Hook(["pods/eviction"], DENIED, "validating")],
        [Ask("POST", f"{NS}/pods/p/eviction", {"metadata": {"name": "p"}}), Ask("GET", f"{NS}/pods/p")],
        [POD],
    ),
    Hooked(
        "a deletion is refused",
        [Hook(["configmaps"], DENIED, "validating", ["DELETE"])],
        [Ask("DELETE", CM_PATH), Ask("DELETE", f"{NS}/configmaps"), Ask("GET", CM_PATH)],
        [CM],
    ),
    Hooked(
        "exec is refused", [Hook(["pods/exec"], DENIED)], [Ask("GET", f"{NS}/pods/p/exec?command=ls")], [POD]
    ),
    Hooked(
        "a token is refused",
        [Hook(["serviceaccounts/token"], DENIED)],
        [Ask("POST", f"{NS}/serviceaccounts/default/token", {})],
    ),
)


def conditioned(name: str, *expressions: str, **fields: Any) -> Hooked:
    conditions = [{"name": f"c{n}", "expression": text} for n, text in enumerate(expressions)]
    # Not about the probe, of which expressions may have no value.
    about = {"objectSelector": {"matchLabels": {"app": "web"}}, "matchConditions": conditions, **fields}
    hooks = [Hook(["configmaps"], sort=sort, fields=about) for sort in BOTH]
    return Hooked(name, hooks, [CM, Ask("DELETE", CM_PATH)])


CONDITIONS = (
    conditioned("a condition that holds", "object == null || object.data.a == 'b'"),
    conditioned("a condition that does not hold", "object != null && object.data.a == 'c'"),
    conditioned("one of several does not hold", "true", "request.operation == 'DELETE'"),
    conditioned("who asks", "request.userInfo.username == 'kubernetes-admin'"),
    conditioned("a condition that fails", "object.data.none == 'c'"),
    conditioned("a condition that fails, ignored", "object.data.none == 'c'", failurePolicy="Ignore"),
    conditioned("one fails and one does not hold", "object.data.none == 'c'", "false"),
    conditioned("what the authorizers say", "authorizer.group('').resource('pods').check('get').allowed()"),
)
AGAIN = (
    Hooked(
        "again, after another changed it",
        [
            Hook(["*"], patch=labelled("a", "x"), fields={"reinvocationPolicy": "IfNeeded"}),
            Hook(["*"], patch=labelled("b", "x")),
        ],
        [CM],
    ),
    Hooked(
        "not again, if nobody asks for it",
        [Hook(["*"], patch=labelled("a", "x")), Hook(["*"], patch=labelled("b", "x"))],
        [CM],
    ),
    Hooked(
        "not again, if nothing changed",
        [Hook(["*"], fields={"reinvocationPolicy": "IfNeeded"}), Hook(["*"])],
        [CM],
    ),
    Hooked(
        "again once, not for ever",
        [
            Hook(
                ["*"],
                patch=[{"op": "add", "path": "/data/" + name, "value": "x"}],
                fields={"reinvocationPolicy": "IfNeeded"},
            )
            for name in "xyz"
        ],
        [CM],
    ),
    Hooked(
        "again, after a plugin changed it",
        [
            Hook(
                ["pods"],
                patch=[{"op": "add", "path": "/spec/tolerations", "value": []}],
                fields={"reinvocationPolicy": "IfNeeded"},
            ),
        ],
        [POD],
    ),
)

ANSWERS = (
    answered("deny", DENIED),
    answered(
        "deny with words", {"allowed": False, "status": {"message": "no", "code": 418, "reason": "Teapot"}}
    ),
    answered(
        "deny with a reason",
        {"allowed": False, "status": {"reason": "Because", "status": "Success", "code": 200}},
    ),
    answered(
        "deny with details",
        {
            "allowed": False,
            "status": {
                "message": "no",
                "details": {
                    "name": "x",
                    "kind": "y",
                    "causes": [{"reason": "r", "message": "m", "field": "f"}],
                },
                "metadata": {"x": 1},
            },
        },
    ),
    answered("deny with a patch", {"allowed": False}, patch=ADDED),
    answered("warn", {"allowed": True, "warnings": ["w1", 'q"x', "long" * 100, ""]}),
    answered("deny and warn", {"allowed": False, "warnings": ["w1"]}),
    answered("too many warnings", {"allowed": True, "warnings": [f"{n} {'x' * 300}" for n in range(20)]}),
    answered("annotations", {"allowed": True, "auditAnnotations": {"a": "b", "c d": "e"}}),
    *(
        answered(f"{sort} {name}", response, sort=sort)
        for sort in BOTH
        for name, response in (
            ("close", Raw(closes=True)),
            ("garbage", Raw("garbage")),
            ("nothing", Raw("")),
            ("an empty object", Raw("{}")),
            ("a list", Raw("[]")),
            ("null", Raw("null")),
            ("half of it", Raw('{"apiVersion":')),
            ("a page", Raw("<html>", headers={"Content-Type": "text/html"})),
            ("another uid", Raw(REVIEW.replace("{uid}", "x"))),
            ("no response", Raw('{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}')),
            ("an older version", Raw(REVIEW.replace("/v1", "/v1beta1"))),
            ("a version that is none", Raw(REVIEW.replace("/v1", "/v2"))),
            ("another kind", Raw(REVIEW.replace("AdmissionReview", "Pod"))),
            ("another type", Raw(REVIEW.replace("true", '"yes"'))),
            ("an unknown field", Raw(REVIEW.replace('"allowed"', '"foo":1,"allowed"'))),
            ("much", Raw(" " * 1_000_000, repeated=4)),
            ("201", Raw(REVIEW, code=201)),
            ("204", Raw("", code=204)),
            ("302", Raw("x", code=302, headers={"Location": "/elsewhere"})),
            ("a redirect to itself", Raw("x", code=307, headers={"Location": "?again"})),
            (
                "500 with a status",
                Raw(
                    '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hm","code":500}',
                    code=500,
                ),
            ),
            *(
                (f"{code}", Raw("nope", code=code))
                for code in (400, 401, 403, 404, 405, 409, 418, 422, 429, 500, 502, 503, 504)
            ),
            *(
                (f"{code} in words", Raw("nope", code=code, headers={"Content-Type": "text/plain"}))
                for code in (403, 500)
            ),
        )
    ),
    *(
        answered(f"{sort} {name}", response, sort=sort)
        for sort in BOTH
        for name, response in (
            ("byte by byte", Raw(REVIEW, dripping=True)),
            ("less than it says", Raw(wire=f"{HEAD}Content-Length: 1000\r\n\r\n{{}}")),
            ("pieces without an end", Raw(wire=f"{HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n")),
            ("a compression that is none", Raw(REVIEW, headers={"Content-Encoding": "odd"})),
            ("a redirect to nobody", Raw(code=307, headers={"Location": "https://127.0.0.1:1/"})),
            ("a redirect without TLS", Raw(code=307, headers={"Location": "http://127.0.0.1:1/"})),
            ("a redirect to a file", Raw(code=307, headers={"Location": "file:///etc/passwd"})),
            ("a redirect to nothing", Raw(code=307)),
            ("the same twice", Raw(REVIEW.replace('"allowed"', '"allowed":false,"allowed"'))),
            ("another case", Raw(REVIEW.replace('"response"', '"Response"'))),
            ("more after it", Raw(REVIEW + REVIEW)),
            ("a uid that is a number", Raw(REVIEW.replace('"{uid}"', "1"))),
            ("no uid", Raw(REVIEW.replace('"{uid}"', '""'))),
            (
                "a patch that is no base64",
                Raw(REVIEW.replace('"allowed"', '"patch":"*","patchType":"JSONPatch","allowed"')),
            ),
        )
    ),
    answered("hang", Raw(hangs=True)),
    answered("hang, ignored", Raw(hangs=True), **fields(failurePolicy="Ignore", timeoutSeconds=1)),
    answered("garbage, ignored", Raw("x"), **fields(failurePolicy="Ignore")),
    answered("deny, ignored is not", DENIED, **fields(failurePolicy="Ignore")),
    answered("validating garbage, ignored", Raw("x"), sort="validating", **fields(failurePolicy="Ignore")),
    answered("nobody listens", **fields(clientConfig={"url": "https://127.0.0.1:1/x"})),
    answered("another authority", **fields(clientConfig={"url": "https://127.0.0.1:{port}/x"})),
    answered("no such service", **fields(clientConfig={"service": {"namespace": "none", "name": "none"}})),
    answered("a dry run", ALLOWED, Ask("POST", f"{NS}/configmaps?dryRun=All", CM.body)),
    answered(
        "a dry run with effects on others alone",
        ALLOWED,
        Ask("POST", f"{NS}/configmaps?dryRun=All", CM.body),
        **fields(sideEffects="NoneOnDryRun"),
    ),
)

PATCHES = (
    changed("a patch", ADDED),
    changed("a patch without a type", ADDED, response={"allowed": True, "patchType": None}),
    changed("a patch of another type", ADDED, response={"allowed": True, "patchType": "Odd"}),
    changed(
        "a patch of another type, ignored",
        ADDED,
        response={"allowed": True, "patchType": "Odd"},
        fields={"failurePolicy": "Ignore"},
    ),
    changed("a patch of an empty type", ADDED, response={"allowed": True, "patchType": ""}),
    answered("a type without a patch", {"allowed": True, "patchType": "JSONPatch"}),
    changed("a patch that validates", ADDED, sort="validating"),
    answered("a type that validates", {"allowed": True, "patchType": "JSONPatch"}, sort="validating"),
    changed("garbage", "garbage"),
    changed("an object", "{}"),
    changed("a number", "1"),
    changed("no operation", []),
    changed("privileges in a map", [{"op": "add", "path": "/spec", "value": {"privileged": True}}]),
    changed("remove what is missing", [{"op": "remove", "path": "/data/q"}]),
    changed(
        "remove what is missing, ignored",
        [{"op": "remove", "path": "/data/q"}],
        fields={"failurePolicy": "Ignore"},
    ),
    changed("replace below what is missing", [{"op": "replace", "path": "/nope/q", "value": 1}]),
    changed("a test that fails", [{"op": "test", "path": "/data/a", "value": "z"}]),
    changed("an operation that is none", [{"op": "foo", "path": "/data/a", "value": "z"}]),
    changed("another type", [{"op": "replace", "path": "/data", "value": "z"}]),
    changed("another type within", [{"op": "replace", "path": "/data/a", "value": {}}]),
    changed("an unknown field", [{"op": "add", "path": "/foo", "value": "z"}]),
    changed("the name", [{"op": "replace", "path": "/metadata/name", "value": "z"}]),
    changed("the namespace", [{"op": "replace", "path": "/metadata/namespace", "value": "z"}]),
    changed("the kind", [{"op": "replace", "path": "/kind", "value": "Pod"}]),
    changed("the version", [{"op": "replace", "path": "/apiVersion", "value": "v2"}]),
    changed("the uid", [{"op": "add", "path": "/metadata/uid", "value": "z"}]),
    changed("the revision", [{"op": "add", "path": "/metadata/resourceVersion", "value": "12"}]),
    changed("a label that is none", [{"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}]),
    changed("no managers", [{"op": "add", "path": "/metadata/managedFields", "value": []}]),
    changed(
        "odd managers",
        [{"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "x", "operation": "Odd"}]}],
    ),
    changed(
        "an owner twice",
        [
            {
                "op": "add",
                "path": "/metadata/ownerReferences",
                "value": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}] * 2,
            }
        ],
    ),
    changed("everything", [{"op": "replace", "path": "", "value": {}}]),
    *(
        changed(
            f"on update, {name}",
            [{"op": "add", "path": f"/metadata/{name}", "value": value}],
            patched({"data": {"a": "c"}}),
            before=[CM],
        )
        for name, value in (
            ("name", "z"),
            ("namespace", "z"),
            ("uid", "z"),
            ("resourceVersion", "12"),
            ("generation", 7),
            ("creationTimestamp", "2026-01-02T03:04:05Z"),
            ("finalizers", ["a.test/b"]),
        )
    ),
    changed("on deletion", ADDED, Ask("DELETE", CM_PATH), Ask("GET", CM_PATH), before=[CM]),
    Hooked(
        "what may not change",
        [
            Hook(
                ["pods"],
                patch=[{"op": "replace", "path": "/spec/nodeName", "value": "z"}],
                operations=["UPDATE"],
            )
        ],
        [patched({"metadata": {"labels": {"x": "y"}}}, f"{NS}/pods/p")],
        [POD],
    ),
    Hooked(
        "a default that is taken away",
        [Hook(["pods"], patch=[{"op": "remove", "path": "/spec/dnsPolicy"}])],
        [POD],
    ),
    Hooked(
        "more than a subresource may",
        [
            Hook(
                ["pods/ephemeralcontainers"],
                patch=[{"op": "replace", "path": "/spec/containers/0/image", "value": "z"}],
            )
        ],
        [DEBUG],
        [POD],
    ),
    Hooked(
        "the status",
        [Hook(["pods"], patch=[{"op": "add", "path": "/status/phase", "value": "Failed"}])],
        [POD],
    ),
    Hooked(
        "the scale",
        [Hook(["deployments/scale"], patch=[{"op": "replace", "path": "/spec/replicas", "value": 7}])],
        [
            patched({"spec": {"replicas": 3}}, f"{APPS}/deployments/d/scale"),
            Ask("GET", f"{APPS}/deployments/d"),
        ],
        [DEPLOYMENT],
    ),
    Hooked(
        "where to bind",
        [Hook(["pods/binding"], patch=[{"op": "replace", "path": "/target/name", "value": "other"}])],
        [Ask("POST", f"{NS}/pods/p/binding", BOUND), Ask("GET", f"{NS}/pods/p")],
        [POD],
    ),
    Hooked(
        "in another version",
        [
            Hook(
                ["horizontalpodautoscalers"],
                rule={"apiGroups": ["autoscaling"], "apiVersions": ["v2"]},
                patch=[{"op": "replace", "path": "/spec/maxReplicas", "value": 9}],
            )
        ],
        [Ask("POST", SCALERS.replace("{version}", "v1"), SCALER)],
    ),
    Hooked(
        "with effects, on a dry run",
        [Hook(["configmaps"], sort=sort) for sort in BOTH],
        [Ask("POST", f"{NS}/configmaps?dryRun=All", CM.body)],
    ),
)

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
WRITER = {"Impersonate_User": "hooked-writer"}
REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writes"}
SUBJECT = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "hooked-writer"}
READS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
WRITES = {"verbs": ["create"], "apiGroups": [REF["apiGroup"]], "resources": ["roles", "rolebindings"]}
BEFORE = (
    Ask("POST", f"{RBAC}/roles", {"metadata": {"name": "writes"}, "rules": [READS, WRITES]}),
    Ask("POST", f"{RBAC}/roles", {"metadata": {"name": "reads"}, "rules": [READS]}),
    Ask(
        "POST",
        f"{RBAC}/rolebindings",
        {"metadata": {"name": "writes"}, "roleRef": REF, "subjects": [SUBJECT]},
    ),
    Ask(
        "POST",
        f"{RBAC}/roles",
        {"metadata": {"name": "strong"}, "rules": [{**READS, "resources": ["secrets"]}]},
    ),
    Ask(
        "PATCH",
        NS,
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}},
        MERGE,
    ),
)
"""A user who writes roles, and a namespace where no pod is privileged."""


def exceeding(name: str, resources: str, path: str, value: Any, *asks: Ask, **fields: Any) -> Hooked:
    """A webhook that sets more than the user who writes, or anybody, may."""
    patch = [{"op": "add", "path": path, "value": value}]
    return Hooked(name, [Hook([resources], patch=patch, fields=fields)], asks or (POD,), BEFORE)


PRIVILEGED = {"privileged": True}
EXCEEDING = (
    exceeding("privileges", "pods", "/spec/containers/0/securityContext", PRIVILEGED),
    exceeding("the host's processes", "pods", "/spec/hostPID", True),
    exceeding("an account that is not there", "pods", "/spec/serviceAccountName", "nobody"),
    exceeding(
        "privileges, once it is asked again",
        "pods",
        "/spec/containers/0/securityContext",
        PRIVILEGED,
        reinvocationPolicy="IfNeeded",
    ),
    exceeding(
        "an account that is not there, once it is asked again",
        "pods",
        "/spec/serviceAccountName",
        "nobody",
        reinvocationPolicy="IfNeeded",
    ),
    exceeding(
        "privileges of an ephemeral container",
        "pods/ephemeralcontainers",
        "/spec/ephemeralContainers/0/securityContext",
        PRIVILEGED,
        POD,
        DEBUG,
    ),
    exceeding(
        "more than the writer of a role holds",
        "roles",
        "/rules/0/verbs",
        ["*"],
        Ask("POST", f"{RBAC}/roles", {"metadata": {"name": "n"}, "rules": [READS]}, WRITER),
    ),
    exceeding(
        "another role than was bound",
        "rolebindings",
        "/roleRef/name",
        "strong",
        Ask(
            "POST",
            f"{RBAC}/rolebindings",
            {"metadata": {"name": "n"}, "roleRef": {**REF, "name": "reads"}, "subjects": [SUBJECT]},
            WRITER,
        ),
    ),
)

WORDED = (
    *(
        answered(f"{sort} {name}", response, sort=sort)
        for sort in BOTH
        for name, response in (
            ("no HTTP", Raw(wire="SSH-2.0-OpenSSH_9.9\r\n")),
            ("a status that is none", Raw(wire="HTTP/1.1 abc OK\r\n\r\n")),
            ("a length that is none", Raw(wire=f"{HEAD}Content-Length: x\r\n\r\n{{}}")),
            ("a piece of no length", Raw(wire=f"{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz\r\n")),
            ("a head without an end", Raw(wire=HEAD)),
            ("what is not compressed as it says", Raw("x", headers={"Content-Encoding": "gzip"})),
            ("a redirect that is no URL", Raw(code=307, headers={"Location": "https://[::1"})),
            ("lists in lists", Raw("[", repeated=100_000)),
        )
    ),
    changed("a copy of copies of copies", COPIES),
    changed("a path into a text", [{"op": "add", "path": "/data/a/b", "value": "z"}]),
    changed("a move into itself", [{"op": "move", "from": "/data", "path": "/data/a"}]),
    changed("an index beyond the end", [{"op": "add", "path": "/metadata/finalizers/7", "value": "z"}]),
)
"""What Kubernetes refuses in the words of Go's own parsers."""
TAKEN = (
    answered("a text that is none", Raw(REVIEW.replace('"allowed"', '"x":"\\ud800","allowed"'))),
    changed(
        "more operations than a client may send", [{"op": "add", "path": "/data/x", "value": "y"}] * 20_000
    ),
)
"""What Kubernetes takes, and podling refuses (docs/decisions/046)."""

SEQUENCES = (*OPERATIONS, *MATCHING, *CONDITIONS, *AGAIN, *ANSWERS, *PATCHES, *EXCEEDING)


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    authority = Authority(tmp_path_factory.mktemp("webhooks"), datetime.now(UTC))
    pair = authority.server("webhook", "webhook", ["127.0.0.1", "localhost"])
    with listening(pair.certificate, pair.key, authority.ca.certificate) as found:
        yield found


@pytest.mark.parametrize("hooked", SEQUENCES, ids=lambda hooked: hooked.name)
def test_podling_asks_and_answers_as_kubernetes(
    hooked: Hooked, kubernetes: Server, podling: Server, listener: Listener
) -> None:
    namespace = f"hooked-{SEQUENCES.index(hooked)}"
    theirs, ours = (outcome(hooked, namespace, server, listener) for server in (kubernetes, podling))
    found = unnamed(unlike_outcomes(theirs, ours))
    assert not found, f"\n{shown(hooked, found)}"


NAMED_HERE = {
    "eviction with options": "options within a body",
    "delete a pod": "a deletion is asked about once",
    "a claim": "a claim begins as pending",
}
"""The differences that sequences show."""


@pytest.mark.parametrize("sequence", NAMED_HERE)
def test_what_is_named_is_still_so(
    sequence: str, kubernetes: Server, podling: Server, listener: Listener
) -> None:
    (hooked,) = (one for one in SEQUENCES if one.name == sequence)
    namespace = f"named-hooked-{SEQUENCES.index(hooked)}"
    theirs, ours = (outcome(hooked, namespace, server, listener) for server in (kubernetes, podling))
    found = unlike_outcomes(theirs, ours)
    assert any(NAMED_HERE[sequence] in names_of(one) for one in found), shown(hooked, found)


@pytest.mark.parametrize("hooked", EXCEEDING, ids=lambda hooked: hooked.name)
def test_a_webhook_sets_no_more_than_may_be(hooked: Hooked, podling: Server, listener: Listener) -> None:
    """What it makes of an object is refused as if a client had sent it."""
    found = outcome(hooked, f"exceeding-{EXCEEDING.index(hooked)}", podling, listener)
    assert found.answers[-1]["code"] == 403


def test_what_is_refused_in_other_words(kubernetes: Server, podling: Server, listener: Listener) -> None:
    differ, refused = [], 0
    for number, hooked in enumerate(WORDED):
        theirs, ours = (
            [(one["code"], one["body"].get("reason")) for one in found.answers]
            for found in (outcome(hooked, f"worded-{number}", one, listener) for one in (kubernetes, podling))
        )
        refused += theirs[-1] == (500, "InternalError")
        if theirs != ours:
            differ.append((hooked.name, theirs, ours))
    assert differ == []
    assert refused == len(WORDED)


@pytest.mark.parametrize("hooked", TAKEN, ids=lambda hooked: hooked.name)
def test_what_kubernetes_takes_is_refused(
    hooked: Hooked, kubernetes: Server, podling: Server, listener: Listener
) -> None:
    namespace = f"taken-{TAKEN.index(hooked)}"
    codes = [outcome(hooked, namespace, one, listener).answers[0]["code"] for one in (kubernetes, podling)]
    assert codes == [201, 500]
