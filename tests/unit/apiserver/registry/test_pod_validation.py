"""What is wrong with a pod, in Kubernetes' paths and words: one line a manifest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.apiserver.registry.pods import Pods
from podling.model.pod import Pod

APP = {"name": "app", "image": "busybox"}
INIT = {"name": "init", "image": "busybox"}
DEBUG = {"name": "debug", "image": "busybox"}
PROBE = {"exec": {"command": ["true"]}}
EMPTY_DIR = [{"name": "v", "emptyDir": {}}]
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NOT_INIT = "Forbidden: may not be set for init containers without restartPolicy=Always"
NOT_EPHEMERAL = "Forbidden: cannot be set for an Ephemeral Container"


def faults(pod: Pod) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in Pods().validate(pod)]


def app(**fields: Any) -> dict[str, Any]:
    return {"containers": [{**APP, **fields}]}


def init(**fields: Any) -> dict[str, Any]:
    return {"initContainers": [{**INIT, **fields}]}


def debug(**fields: Any) -> dict[str, Any]:
    return {"ephemeralContainers": [{**DEBUG, **fields}]}


def unsupported(value: str, *supported: str) -> str:
    return f'Unsupported value: "{value}": supported values: ' + ", ".join(f'"{one}"' for one in supported)


C, IC, E = "spec.containers[0]", "spec.initContainers[0]", "spec.ephemeralContainers[0]"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        init(),
        init(restartPolicy="Always", startupProbe=PROBE, livenessProbe=PROBE, lifecycle={"postStart": PROBE}),
        debug(targetContainerName="app", securityContext={"privileged": True}, tty=True, stdin=True),
        {**init(), **debug(targetContainerName="init")},
        {**app(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "a/b"}]), "volumes": EMPTY_DIR},
        app(
            env=[
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ]
        ),
        app(env=[{"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a.io/b']"}}}]),
        app(ports=[{"containerPort": 80, "name": "http", "hostPort": 8080}]),
        app(
            resources={
                "limits": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "2"},
                "requests": {"cpu": "500m"},
            }
        ),
        app(
            livenessProbe={"httpGet": {"port": "http"}},
            readinessProbe={"tcpSocket": {"port": 1}},
            startupProbe={"grpc": {"port": 2}},
        ),
        {
            "tolerations": [
                {"operator": "Exists"},
                {"key": "a", "effect": "NoExecute", "tolerationSeconds": 1},
            ]
        },
        {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]},
        {"volumes": [{"name": "v", "image": {"reference": "a/b:c"}}]},
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"], "searches": ["a.b."]}},
        {"restartPolicy": "OnFailure", "activeDeadlineSeconds": 5, "hostname": "h", "nodeName": "n"},
    ],
)
def test_valid(make_pod: Callable[..., Pod], spec: dict[str, Any]) -> None:
    assert faults(make_pod(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # names: R-INIT-8
        ({"containers": None}, ["spec.containers: Required value"]),
        (app(name=""), [f"{C}.name: Required value"]),
        (app(name="A"), [f'{C}.name: Invalid value: "A": {LABEL}']),
        ({"containers": [APP, APP]}, ['spec.containers[1].name: Duplicate value: "app"']),
        (init(name="app"), [f'{IC}.name: Duplicate value: "app"']),
        (debug(name="app"), [f'{E}.name: Duplicate value: "app"']),
        ({**init(), **debug(name="init")}, [f'{E}.name: Duplicate value: "init"']),
        # images
        (app(image=""), [f"{C}.image: Required value"]),
        (app(image=" a"), [f'{C}.image: Invalid value: " a": must not have leading or trailing whitespace']),
        (
            app(imagePullPolicy="Often"),
            [f"{C}.imagePullPolicy: {unsupported('Often', 'Always', 'IfNotPresent', 'Never')}"],
        ),
        # init containers: R-INIT-6
        (init(lifecycle={"preStop": PROBE}), [f"{IC}.lifecycle: {NOT_INIT}"]),
        (init(livenessProbe=PROBE), [f"{IC}.livenessProbe: {NOT_INIT}"]),
        (init(readinessProbe=PROBE), [f"{IC}.readinessProbe: {NOT_INIT}"]),
        (init(startupProbe=PROBE), [f"{IC}.startupProbe: {NOT_INIT}"]),
        # ephemeral containers: R-EPH-2
        (debug(ports=[{"containerPort": 80}]), [f"{E}.ports: {NOT_EPHEMERAL}"]),
        (debug(livenessProbe=PROBE), [f"{E}.livenessProbe: {NOT_EPHEMERAL}"]),
        (debug(readinessProbe=PROBE), [f"{E}.readinessProbe: {NOT_EPHEMERAL}"]),
        (debug(startupProbe=PROBE), [f"{E}.startupProbe: {NOT_EPHEMERAL}"]),
        (debug(lifecycle={"preStop": PROBE}), [f"{E}.lifecycle: {NOT_EPHEMERAL}"]),
        (debug(resources={"requests": {"cpu": "1"}}), [f"{E}.resources: {NOT_EPHEMERAL}"]),
        (debug(restartPolicy="Always"), [f"{E}.restartPolicy: {NOT_EPHEMERAL}"]),
        (
            {**debug(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "a"}]), "volumes": EMPTY_DIR},
            [f"{E}.volumeMounts[0].subPath: {NOT_EPHEMERAL}"],
        ),
        (debug(targetContainerName="x"), [f'{E}.targetContainerName: Not found: "x"']),
        (debug(targetContainerName="debug"), [f'{E}.targetContainerName: Not found: "debug"']),
        # ports
        (app(ports=[{"containerPort": 0}]), [f"{C}.ports[0].containerPort: Required value"]),
        (
            app(ports=[{"containerPort": 70000}]),
            [f"{C}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (
            app(ports=[{"containerPort": 1, "protocol": "X"}]),
            [f'{C}.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'],
        ),
        (
            app(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
            [f'{C}.ports[1].name: Duplicate value: "a"'],
        ),
        (
            app(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
            [f'{C}.ports[1].hostPort: Duplicate value: "TCP/9"'],
        ),
        (
            {**app(ports=[{"containerPort": 1, "hostPort": 2}]), "hostNetwork": True},
            [
                f"{C}.ports[0].hostPort: Invalid value: 2: "
                "must match `containerPort` when `hostNetwork` is true"
            ],
        ),
        # environment
        (app(env=[{"name": ""}]), [f"{C}.env[0].name: Required value"]),
        (
            app(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]),
            [
                f'{C}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.x": supported values: '
                '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", '
                '"spec.serviceAccountName", "status.hostIP", "status.hostIPs", '
                '"status.podIP", "status.podIPs"'
            ],
        ),
        (
            app(env=[{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
            [f'{C}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        ),
        (
            app(envFrom=[{}]),
            [f'{C}.envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
        ),
        # volumes and mounts
        (app(volumeMounts=[{"name": "v", "mountPath": "/v"}]), [f'{C}.volumeMounts[0].name: Not found: "v"']),
        (
            {**app(volumeMounts=[{"name": "v", "mountPath": "/v"}] * 2), "volumes": EMPTY_DIR},
            [f'{C}.volumeMounts[1].mountPath: Invalid value: "/v": must be unique'],
        ),
        (
            {**app(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "../x"}]), "volumes": EMPTY_DIR},
            [f"{C}.volumeMounts[0].subPath: Invalid value: \"../x\": must not contain '..'"],
        ),
        ({"volumes": EMPTY_DIR * 2}, ['spec.volumes[1].name: Duplicate value: "v"']),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            ["spec.volumes[0].emptyDir: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": ""}}]},
            ["spec.volumes[0].hostPath.path: Required value"],
        ),
        (
            {"volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "/x"}]}}]},
            ['spec.volumes[0].configMap.items[0].path: Invalid value: "/x": must be a relative path'],
        ),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 4096}}]},
            [
                "spec.volumes[0].secret.defaultMode: Invalid value: 4096: "
                "must be a number between 0 and 0777 (octal), both inclusive"
            ],
        ),
        # probes and hooks
        (app(livenessProbe={}), [f"{C}.livenessProbe: Required value: must specify a handler type"]),
        (
            app(livenessProbe={**PROBE, "successThreshold": 2}),
            [f"{C}.livenessProbe.successThreshold: Invalid value: 2: must be 1"],
        ),
        (
            app(readinessProbe={**PROBE, "periodSeconds": -1}),
            [f"{C}.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            app(livenessProbe={**PROBE, "tcpSocket": {"port": 1}}),
            [f"{C}.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
        ),
        (
            app(lifecycle={"postStart": {"exec": {}}}),
            [f"{C}.lifecycle.postStart.exec.command: Required value"],
        ),
        (
            app(startupProbe={"httpGet": {"port": 0}}),
            [f"{C}.startupProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        ),
        # resources
        (
            app(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
            [f'{C}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        ),
        (
            app(resources={"limits": {"cpu": "-1"}}),
            [
                f'{C}.resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
                f'{C}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            ],
        ),
        (
            app(resources={"requests": {"example.com/gpu": "1"}}),
            [f"{C}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        # the pod
        (
            {"restartPolicy": "Some"},
            [f"spec.restartPolicy: {unsupported('Some', 'Always', 'Never', 'OnFailure')}"],
        ),
        (
            {"activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
        (
            {"tolerations": [{"key": "a", "tolerationSeconds": 1}]},
            [
                'spec.tolerations[0].effect: Invalid value: "": '
                "effect must be 'NoExecute' when `tolerationSeconds` is set"
            ],
        ),
        ({"hostname": "A"}, [f'spec.hostname: Invalid value: "A": {LABEL}']),
        (
            {"dnsPolicy": "None"},
            ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            {"hostUsers": False, "hostNetwork": True},
            ["spec.hostNetwork: Forbidden: when `hostUsers` is false"],
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            [
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
                ".nodeSelectorTerms: Required value: must have at least one node selector term"
            ],
        ),
        (
            app(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
            [
                f'{C}.securityContext: Invalid value: {{"privileged":true,"allowPrivilegeEscalation":false}}'
                ": cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            ],
        ),
        (
            {"securityContext": {"runAsUser": -1}},
            [
                "spec.securityContext.runAsUser: Invalid value: -1: "
                "must be between 0 and 2147483647, inclusive"
            ],
        ),
    ],
)
def test_invalid(make_pod: Callable[..., Pod], spec: dict[str, Any], expected: list[str]) -> None:
    assert faults(make_pod(**spec)) == expected


def test_ephemeral_containers_cannot_be_there_at_creation(make_pod: Callable[..., Pod]) -> None:
    """R-EPH-1"""
    causes = Pods().validate_create(make_pod(**debug()))
    assert [(cause.field, cause.message) for cause in causes] == [
        ("spec.ephemeralContainers", "Forbidden: cannot be set on create")
    ]


def test_every_fault_is_reported_at_once(make_pod: Callable[..., Pod]) -> None:
    pod = make_pod(restartPolicy="x", **app(image=""), **init(livenessProbe=PROBE))
    assert [fault.split(":")[0] for fault in faults(pod)] == [
        f"{C}.image",
        f"{IC}.livenessProbe",
        "spec.restartPolicy",
    ]


def test_a_name_is_needed_and_checked(make_pod: Callable[..., Pod]) -> None:
    assert faults(make_pod(metadata={"name": None})) == [
        "metadata.name: Required value: name or generateName is required"
    ]
    assert faults(make_pod(metadata={"name": "A_b"}))[0].startswith(
        'metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of'
    )
