"""R-SYS-8: policies are told in their status what does not fit the types of what they are for, as by
Kubernetes' controller validatingadmissionpolicy-status.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peer.server import Server, running
from peer.test_admission_registration import GROUP

PATH = f"{GROUP}/validatingadmissionpolicies"
CONTROLLER = "validatingadmissionpolicy-status-controller"
LOOKS = 3_000
NUMBER = re.compile(r"\b([A-Z][A-Za-z]+)\d+\b")
"""What Kubernetes adds to the name of a type, another number each time."""
PODS, DEPLOYMENTS = ("", "v1", "pods"), ("apps", "v1", "deployments")
MANY = "deployments replicasets statefulsets daemonsets jobs pods configmaps secrets services nodes events"
VARIABLES = {
    "s": "object.spec",
    "l": "object.spec.containers",
    "ls": "object.metadata.finalizers",
    "m": "object.metadata.labels",
    "i": "object.spec.priority",
    "t": "object.metadata.creationTimestamp",
    "p": "params",
    "bad": "object.spec.nope",
    "o": "optional.of(object.spec)",
    "ob": "object",
    "q": "quantity('1')",
    "typ": "type(object)",
    "dep": "variables.i + 1",
}
OF_PODS = """object.spec.replicas <= 5
object.metadata.name == 1
object.spec.containers.all(c, c.nope == 1)
object.spec.containers[0].resources.limits['cpu'] == 1
object.spec.containers[0].ports[0].containerPort == 'a'
object.metadata.creationTimestamp == 1
object.spec.volumes[0].configMap.items[0].mode == 'x'
object.spec.containers[0].livenessProbe.httpGet.port == true
object.apiVersion == 1
object == 1
object.status == 1
object.spec.overhead == 1
object.metadata.managedFields[0].fieldsV1 == 1
object.metadata.managedFields[0].time == 1
has(object.spec.nope)
object.spec.containers.exists(c, has(c.securityContext.nope)) || object.spec.nope2 == 1
object.metadata.labels == 1
object.spec.containers[0].env[0].valueFrom.fieldRef.nope == 1
object.spec.terminationGracePeriodSeconds == 1.0
object.metadata.annotations.all(k, object.metadata.annotations[k] == 1)
object == oldObject
object == params
oldObject.spec.nope == 1
namespaceObject.metadata.name == object.metadata.name
request.name == object.metadata.name && request.userInfo.extra['a'][0] == object.spec.nodeName
authorizer.group('').resource('pods').check('get').allowed() && object.x == 1
authorizer.requestResource.check('get').allowed() && object.spec.nope == 1
params.data.a == 1
params.nope == 1
object.spec.?hostname.orValue(1) == 'a'
object.spec.containers.map(c, c.name) == [1]
object.spec.tolerations.exists(t, t.key == 'a' && t.tolerationSeconds > 'b')
object.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].nope == 1
[object.metadata.name, object.spec.priority] == []
variables.s.nope == 1
variables.s == 1
variables.l[0].nope == 1
variables.l == 1
variables.ls == 1
variables.m['a'] == 1
variables.i == 'a'
variables.t == 1
variables.p.nope == 1
variables.bad == 1
variables.o == 1
variables.ob.nope == 1
variables.q == 1
variables.typ == 1
object.spec.containers[0].terminationMessagePath.nope == 1
1 + 1 == 2""".splitlines()


def policy(name: str, rules: list[tuple[str, str, str]], *texts: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": group.split("|"),
                        "apiVersions": version.split("|"),
                        "resources": resources.split(),
                        "operations": ["CREATE"],
                    }
                    for group, version, resources in rules
                ]
            },
            "validations": [{"expression": text} for text in texts],
            **spec,
        },
    }


def policies() -> list[dict[str, Any]]:
    nope, parameters = "object.spec.nope == 1", {"apiVersion": "v1", "kind": "ConfigMap"}
    known = [{"name": name, "expression": text} for name, text in VARIABLES.items()]
    told = [{"expression": "true", "messageExpression": "string(object.spec.nope)"}]
    return [
        *(
            policy(f"types-{i}", [PODS], text, variables=known, paramKind=parameters)
            for i, text in enumerate(OF_PODS)
        ),
        policy("types-both", [DEPLOYMENTS, PODS], "object.spec.replicas <= 5", "object.metadata.name == 1"),
        policy("types-of-any", [("*", "v1", "deployments")], nope),
        policy("types-of-all", [("apps", "v1", "*")], nope),
        policy("types-of-any-version", [("apps", "*", "deployments")], nope),
        policy("types-of-parts", [("apps", "v1", "deployments/status deployments/* */scale")], nope),
        policy("types-of-many", [("apps|batch|", "v1", MANY)], "object.nope == 1"),
        policy("types-of-unknown", [("nope.x", "v1", "foos")], nope),
        policy("types-of-some", [("nope.x", "v1", "foos"), PODS], nope),
        policy("types-messages", [PODS], "true", validations=told),
        policy(
            "types-unknown-params",
            [PODS],
            "params.x == 1",
            nope,
            paramKind={"apiVersion": "x.y/v1", "kind": "Nope"},
        ),
        policy(
            "types-conditions",
            [PODS],
            "true",
            matchConditions=[{"name": "a", "expression": nope}],
            auditAnnotations=[{"key": "k", "valueExpression": "string(object.spec.nope)"}],
        ),
        policy(
            "types-of-definitions",
            [("apiextensions.k8s.io", "v1", "customresourcedefinitions")],
            "object.spec.versions[0].schema.openAPIV3Schema.properties['a'].nope == 1",
            "object.spec.versions[0].schema.openAPIV3Schema.nope == 1",
            "object.spec.versions[0].schema.openAPIV3Schema.enum == 1",
            "object.spec.versions[0].schema.openAPIV3Schema.not == 1",
            "object.spec.versions[0].schema.openAPIV3Schema.items == 1",
            "object.spec.versions[0].name == 1",
        ),
        policy(
            "types-of-others",
            [
                ("", "v1", "services secrets"),
                ("batch", "v1", "jobs"),
                ("networking.k8s.io", "v1", "ingresses"),
            ],
            "object.data.a == 1",
            "object.spec.ports[0].targetPort == 1.5",
            "object.spec.template.spec.containers[0].nope == 1",
            "object.spec.rules[0].http.paths[0].backend.service.port.number == 'a'",
        ),
        policy(
            "types-of-scale", [("autoscaling", "v1", "horizontalpodautoscalers")], "object.spec.metrics == 1"
        ),
    ]


TOYS = "types.example.com"
TOY = {
    "metadata": {"name": f"toys.{TOYS}"},
    "spec": {
        "group": TOYS,
        "scope": "Namespaced",
        "names": {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}
                        },
                    }
                },
            }
        ],
    },
}
"""A kind that is not built in, which Kubernetes serves."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def of_toys(server: Server) -> Iterator[list[dict[str, Any]]]:
    """Policies for a kind that is not built in, once it is served with its types."""
    assert server.ask("POST", DEFINITIONS, TOY).code == 201
    for _ in range(LOOKS):
        if "Toy" in str(server.ask("GET", f"/openapi/v3/apis/{TOYS}/v1").body):
            break
        server.ask("GET", "/readyz")
    texts = ("object.spec.size == 'a'", "object.spec.nope == 1", "object.spec.size == 1")
    yield [
        policy("types-toys", [(TOYS, "v1", "toys")], *texts),
        policy("types-toys-and-pods", [(TOYS, "v1", "toys toys/status"), PODS], *texts),
        policy("types-toys-of-another-version", [(TOYS, "v2|v1", "toys")], *texts),
        policy("types-no-toys", [(TOYS, "v1", "games")], *texts),
        policy(
            "types-toys-as-parameters",
            [PODS],
            "params.spec.size == 'a'",
            paramKind={"apiVersion": f"{TOYS}/v1", "kind": "Toy"},
        ),
    ]
    server.ask("DELETE", f"{DEFINITIONS}/toys.{TOYS}")


@contextmanager
def told_by(server: Server, directory: Path, *program: str) -> Iterator[Server]:
    """The server with the controller."""
    log = directory / f"{server.name}-{Path(program[0]).name}.log"
    with running([*program, f"--kubeconfig={server.kubeconfig}"], log):
        yield server


def statuses(server: Server, bodies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of every policy, once it has one."""
    found: dict[str, Any] = {}
    with server.asking() as asking:
        for body in bodies:
            answer = asking.ask("POST", PATH, body)
            assert answer.code == 201, answer.body
        for _ in range(LOOKS):
            for one in asking.ask("GET", PATH).body["items"]:
                status = one.get("status", {})
                if one["metadata"]["name"].startswith("types-") and status.get("observedGeneration"):
                    found[one["metadata"]["name"]] = status
            if len(found) == len(bodies):
                break
        for body in bodies:
            asking.ask("DELETE", f"{PATH}/{body['metadata']['name']}")
    return {name: _unnumbered(status) for name, status in found.items()}


def _unnumbered(status: Any) -> Any:
    for one in status.get("typeChecking", {}).get("expressionWarnings", []):
        one["warning"] = NUMBER.sub(r"\1", one["warning"])
    return status


def test_what_policies_are_told(
    kubernetes: Server, podling: Server, kubernetes_programs: Path, tmp_path: Path
) -> None:
    """By Kubernetes' controller manager and podling's controllers, beside its own server each, and podling's
    beside that of Kubernetes, which serves a kind that is not built in. The build of kube-apiserver at hand
    writes the documents of such kinds so that neither finds their types."""
    manager = str(kubernetes_programs / "kube-controller-manager")
    one = [manager, f"--controllers={CONTROLLER}", "--leader-elect=false", "--secure-port=0"]
    own = [sys.executable, "-m", "podling", "controllers", "--secure-port=0"]
    bodies = policies()
    with of_toys(kubernetes) as toys:
        with told_by(kubernetes, tmp_path, *one):
            theirs = statuses(kubernetes, [*bodies, *toys])
        with told_by(kubernetes, tmp_path, *own):
            beside = statuses(kubernetes, [*bodies, *toys])
    assert len(theirs) == len(bodies) + len(toys)
    with told_by(podling, tmp_path, *own):
        ours = statuses(podling, bodies)
    for side in (beside, {**beside, **ours}):
        unlike = {name: (theirs[name], side.get(name)) for name in theirs if theirs[name] != side.get(name)}
        assert not unlike, "\n".join(f"{name}\n  {one}\n  {other}" for name, (one, other) in unlike.items())
