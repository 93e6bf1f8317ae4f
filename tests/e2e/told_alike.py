"""Pods that go wrong in all the ways a kubelet tells of, and what is told of one, so that two kubelets can be
compared: its status and its events, without what differs from pod to pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

BUSYBOX = "podling.test/busybox:1"
SLEEP = "trap 'exit 0' TERM; sleep 1000 & wait"
SERVE = f"mkdir -p /tmp/w; httpd -p 8080 -h /tmp/w; {SLEEP}"
OFTEN = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 30}
NEVER = {"restartPolicy": "Never"}


def app(script: str = SLEEP, **more: Any) -> dict[str, Any]:
    return {
        "name": "app",
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        **more,
    }


def spec(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"terminationGracePeriodSeconds": 1, "containers": [*(containers or [app()])], **more}


def _run(*command: str) -> dict[str, Any]:
    return {"exec": {"command": [*command]}}


def _probed(kind: str, script: str = SERVE, **probe: Any) -> dict[str, Any]:
    return spec(app(script, **{f"{kind}Probe": {**OFTEN, **probe}}, ports=[{"containerPort": 8080}]))


def _hooked(kind: str, **handler: Any) -> dict[str, Any]:
    # It ends by a signal, however soon that comes.
    return spec(app("exec sleep 1000", lifecycle={kind: handler}))


def _volume(mount: Mapping[str, Any] | None = None, **source: Any) -> dict[str, Any]:
    mounts = [{"name": "v", "mountPath": "/v", **(mount or {})}]
    return spec(app(volumeMounts=mounts), volumes=[{"name": "v", **source}])


CASES: Mapping[str, tuple[dict[str, Any], str]] = {
    "http": (_probed("readiness", httpGet={"path": "/none", "port": 8080}), "Unhealthy"),
    "http-refused": (_probed("readiness", httpGet={"port": 9090}), "Unhealthy"),
    "http-scheme": (_probed("readiness", httpGet={"port": 8080, "scheme": "HTTPS"}), "Unhealthy"),
    "port-name": (_probed("readiness", httpGet={"port": "none"}), "Unhealthy"),
    "tcp": (_probed("readiness", tcpSocket={"port": 9090}), "Unhealthy"),
    "grpc": (_probed("readiness", grpc={"port": 9090}, timeoutSeconds=3), "Unhealthy"),
    "grpc-http": (_probed("readiness", grpc={"port": 8080}, timeoutSeconds=3), "Unhealthy"),
    "command": (_probed("readiness", **_run("sh", "-c", "echo out; echo err >&2; exit 3")), "Unhealthy"),
    "command-silent": (_probed("readiness", **_run("false")), "Unhealthy"),
    "command-none": (_probed("readiness", **_run("/none")), "Unhealthy"),
    "command-slow": (_probed("readiness", **_run("sleep", "5"), timeoutSeconds=1), "Unhealthy"),
    "liveness": (_probed("liveness", **_run("test", "-e", "/none"), initialDelaySeconds=1), "Killing"),
    "startup": (_probed("startup", **_run("test", "-e", "/none")), "Killing"),
    "exit": (spec(app("echo gone > /dev/termination-log; exit 3")), "BackOff"),
    "exit-never": (spec(app("exit 3"), **NEVER), "Started"),
    "signal": (spec(app("kill -9 $$"), **NEVER), "Started"),
    "message-of-log": (
        spec(app("echo last words; exit 1", terminationMessagePolicy="FallbackToLogsOnError"), **NEVER),
        "Started",
    ),
    "completed": (spec(app("exit 0")), "BackOff"),
    "init": (spec(app(), initContainers=[{**app("exit 4"), "name": "first"}], **NEVER), "Started"),
    "init-loop": (spec(app(), initContainers=[{**app("exit 4"), "name": "first"}]), "BackOff"),
    "sidecar": (
        spec(app("exit 0"), initContainers=[{**app(), "name": "side", "restartPolicy": "Always"}], **NEVER),
        "Killing",
    ),
    "no-image": (spec(app(image="podling.test/none:1")), "ErrImageNeverPull"),
    "bad-image": (spec(app(image="UPPER:1")), "InspectFailed"),
    "no-registry": (spec(app(image="127.0.0.1:1/none:1", imagePullPolicy="IfNotPresent")), "BackOff"),
    "no-command": (spec(app(command=["/none"])), "BackOff"),
    "no-directory": (spec(app(workingDir="/bin/sh/x")), "Failed"),
    "no-config-map": (spec(app(envFrom=[{"configMapRef": {"name": "none"}}])), "Failed"),
    "no-key": (
        spec(app(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "none", "key": "k"}}}])),
        "Failed",
    ),
    "no-key-of-map": (
        spec(
            app(
                env=[
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "kube-root-ca.crt", "key": "k"}}}
                ]
            )
        ),
        "Failed",
    ),
    "no-secret-volume": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            volumes=[{"name": "v", "secret": {"secretName": "none"}}],
        ),
        "FailedMount",
    ),
    "no-key-volume": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            volumes=[
                {
                    "name": "v",
                    "configMap": {"name": "kube-root-ca.crt", "items": [{"key": "k", "path": "p"}]},
                }
            ],
        ),
        "FailedMount",
    ),
    "no-host-path": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            volumes=[{"name": "v", "hostPath": {"path": "/none/at/all", "type": "Directory"}}],
        ),
        "FailedMount",
    ),
    "no-sub-path": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v", "subPathExpr": "$(NONE)"}]),
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        "Failed",
    ),
    "no-pvc": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}],
        ),
        "FailedMount",
    ),
    "root": (spec(app(), securityContext={"runAsNonRoot": True}), "Failed"),
    "root-uid": (spec(app(), securityContext={"runAsNonRoot": True, "runAsUser": 0}), "Failed"),
    "too-large": (spec(app(resources={"requests": {"cpu": "1000"}})), "OutOfcpu"),
    "selector": (spec(nodeSelector={"none": "such"}), "NodeAffinity"),
    "sysctl": (
        spec(securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}),
        "SysctlForbidden",
    ),
    "post-start": (_hooked("postStart", **_run("sh", "-c", "echo no; exit 5")), "FailedPostStartHook"),
    "post-start-http": (_hooked("postStart", httpGet={"port": 9090}), "FailedPostStartHook"),
    "post-start-port": (_hooked("postStart", httpGet={"port": "none"}), "FailedPostStartHook"),
    "dns-host": (spec(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet"), "Started"),
    "dns-many": (
        spec(
            dnsPolicy="None",
            dnsConfig={"nameservers": [f"192.0.2.{n}" for n in range(1, 4)], "searches": ["a.b"]},
        ),
        "Started",
    ),
    "no-capital-host": (spec(app(image="A/b:1")), "ErrImageNeverPull"),
    "digits": (spec(app(image="a" * 64)), "InspectFailed"),
    "no-quantity": (
        spec(
            app(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['none']"}}}])
        ),
        "Started",
    ),
    "service-account": (spec(serviceAccountName="default", automountServiceAccountToken=False), "Started"),
    "projected": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            volumes=[
                {
                    "name": "v",
                    "projected": {"sources": [{"secret": {"name": "none"}}, {"configMap": {"name": "no"}}]},
                }
            ],
        ),
        "FailedMount",
    ),
    "host-volume": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            hostNetwork=True,
            volumes=[{"name": "v", "secret": {"secretName": "none"}}],
        ),
        "FailedMount",
    ),
    "two-volumes": (
        spec(
            app(volumeMounts=[{"name": n, "mountPath": f"/{n}"} for n in "vw"]),
            volumes=[
                {"name": "v", "secret": {"secretName": "none"}},
                {"name": "w", "configMap": {"name": "none"}},
            ],
        ),
        "FailedMount",
    ),
    "host-file": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            volumes=[{"name": "v", "hostPath": {"path": "/etc", "type": "File"}}],
        ),
        "FailedMount",
    ),
    "host-socket": (
        spec(
            app(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            volumes=[{"name": "v", "hostPath": {"path": "/etc/passwd", "type": "Socket"}}],
        ),
        "FailedMount",
    ),
    "user-name": (spec(app(securityContext={"runAsNonRoot": True, "runAsGroup": 5})), "Failed"),
    "too-much-memory": (spec(app(resources={"requests": {"memory": "1Ti", "cpu": "500"}})), "OutOfcpu"),
    "os": (spec(os={"name": "windows"}, hostNetwork=False), "PodOSNotSupported"),
    "restart-rules": (
        spec(
            app(
                "exit 42",
                restartPolicy="Never",
                restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
            )
        ),
        "BackOff",
    ),
    "users": (spec(hostUsers=False), "FailedCreatePodSandBox"),
    "no-profile": (
        spec(securityContext={"appArmorProfile": {"type": "Localhost", "localhostProfile": "none"}}),
        "AppArmor",
    ),
    "no-driver": (_volume(csi={"driver": "none.such.io"}), "FailedMount"),
    "no-image-volume": (_volume(image={"reference": "podling.test/none:1", "pullPolicy": "Never"}), "Failed"),
    "sub-path-in-file": (_volume({"subPath": "ca.crt/x"}, configMap={"name": "kube-root-ca.crt"}), "Failed"),
    "two-ends": (spec(app("exit 1"), {**app(), "name": "other"}, **NEVER), "Started"),
    "sidecar-probe": (
        spec(
            app(),
            initContainers=[
                {
                    **app(),
                    "name": "side",
                    "restartPolicy": "Always",
                    "startupProbe": {**OFTEN, **_run("false")},
                }
            ],
        ),
        "Killing",
    ),
    "init-image": (
        spec(app(), initContainers=[{**app(image="podling.test/none:1"), "name": "first"}]),
        "ErrImageNeverPull",
    ),
    "long-log": (
        spec(
            app(
                "yes 0123456789abcdef | head -n 1000; exit 1",
                terminationMessagePolicy="FallbackToLogsOnError",
            ),
            **NEVER,
        ),
        "Started",
    ),
    "long-message": (spec(app("yes x | head -c 10000 > /dev/termination-log; exit 1"), **NEVER), "Started"),
    "pre-stop": (_hooked("preStop", **_run("false")), "Started"),
    "pre-stop-slow": (_hooked("preStop", **_run("sleep", "100")), "Started"),
    "pre-stop-http": (_hooked("preStop", httpGet={"port": 9090}), "Started"),
    "pre-stop-tls": (
        spec(app(SERVE, lifecycle={"preStop": {"httpGet": {"port": 8080, "scheme": "HTTPS"}}})),
        "Started",
    ),
    "memory": (
        spec(
            app("head -c 64m /dev/zero | tail > /dev/null", resources={"limits": {"memory": "16Mi"}}), **NEVER
        ),
        "Started",
    ),
}
"""By name: what the pod is, and the reason of the event after which it is looked at."""

AT_THE_END = {"pre-stop": True, "pre-stop-slow": True, "pre-stop-http": True, "pre-stop-tls": False}
"""Whether the hook fails when the pod is deleted."""

_MASKS = [
    (re.compile(pattern), put)
    for pattern, put in (
        (r"[0-9a-f]{64}", "ID"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\b(\d+\.){3}\d+:\d{5}\b", "CLIENT"),
        (r"\b10\.(\d+\.){2}\d+\b", "ADDRESS"),
        (r"\b[\d.]+m?s \([\d.]+m?s including waiting\)", "TIME"),
        (r"Image size: \d+ bytes", "SIZE"),
        (r"^\(combined from similar events\): ", ""),
        # One by one they are no longer unmounted.
        (r"unmounted volumes=\[[^]]*\]", "unmounted volumes"),
        (r"back-off \d+\w+", "back-off SOON"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "WHEN"),
    )
]


def masked(text: str, name: str) -> str:
    text = text.replace(name, "POD")
    for pattern, put in _MASKS:
        text = pattern.sub(put, text)
    return text


def _state(state: Mapping[str, Any], name: str) -> Any:
    return {
        which: {
            key: masked(str(value), name) for key, value in told.items() if not key.endswith(("At", "ID"))
        }
        for which, told in state.items()
    }


def told(pod: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a kubelet told of it; `events` are of all pods."""
    name, status = pod["metadata"]["name"], pod["status"]
    said = {
        (one["type"], one["reason"], masked(one["message"], name), one["involvedObject"].get("fieldPath"))
        for one in events
        if one["involvedObject"]["name"] == name and one["source"].get("component") == "kubelet"
    }
    containers = {
        one["name"]: {
            "state": _state(one.get("state", {}), name),
            "last": _state(one.get("lastState", {}), name),
            "ready": one["ready"],
            "started": one.get("started"),
        }
        for kind in ("initContainerStatuses", "containerStatuses")
        for one in status.get(kind, [])
    }
    conditions = {
        one["type"]: (one["status"], one.get("reason"), masked(one.get("message", ""), name))
        for one in status.get("conditions", [])
    }
    whole = {key: masked(status.get(key, ""), name) for key in ("phase", "reason", "message")}
    addresses = len(status.get("podIPs", []))
    return {
        "events": said,
        "containers": containers,
        "conditions": conditions,
        "addresses": addresses,
        **whole,
    }


RACES = {"BackOff", "Killing", "MissingClusterDNS"}
"""Reasons of events that one may have told when the other has not yet; podling's kubelet makes the sandbox
while volumes are set up."""
CREATING, STARTS = "ContainerCreating", "PodReadyToStartContainers"
_STARTING = "dial tcp ADDRESS:8080: connect: connection refused"


def _has_no_volumes(told: Mapping[str, Any]) -> bool:
    waiting = {one["state"].get("waiting", {}).get("reason") for one in told["containers"].values()}
    return ("Warning", "FailedMount") in {what[:2] for what in told["events"]} and waiting == {CREATING}


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Where two kubelets tell of the same otherwise, as far as they are at the same point."""
    events = [
        {
            key: {what for what in told["events"] if what[:2] == key and _STARTING not in what[2]}
            for key in {what[:2] for what in told["events"]}
        }
        for told in (one, other)
    ]
    for key in events[0].keys() | events[1].keys():
        first, second = (told.get(key, set()) for told in events)
        if first != second and (key[1] not in RACES or (first and second)):
            yield f"events: {sorted(map(str, first - second))} {sorted(map(str, second - first))}"
    # How a container ends that is killed depends on how far it was.
    is_killed = ("Normal", "Killing") in events[0].keys() | events[1].keys()
    for name, first in one["containers"].items():
        second = other["containers"][name]
        for which in ("state",) if is_killed else ("state", "last"):
            reasons = [
                {(state, told.get("reason")) for state, told in one[which].items()} for one in (first, second)
            ]
            if reasons[0] == reasons[1] and first[which] != second[which]:
                yield f"{which} of {name}: {first[which]} {second[which]}"
    for type_, first in one["conditions"].items():
        second = other["conditions"].get(type_)
        if second and first[0] == second[0] and first != second:
            yield f"{type_}: {first} {second}"
    if all(map(_has_no_volumes, (one, other))):
        shown = [(told["conditions"][STARTS][0], told["addresses"]) for told in (one, other)]
        if shown[0] != shown[1]:
            yield f"{STARTS} and addresses: {shown}"
    if one["phase"] == other["phase"]:
        for key in ("reason", "message"):
            if one[key] != other[key]:
                yield f"{key}: {one[key]!r} {other[key]!r}"
