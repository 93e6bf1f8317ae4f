"""How a pod may change once it is there: its spec, resources, debugging containers and status, the node that
it is bound to, and its deletion, as in Kubernetes.

Each pod has a namespace of its own, and most changes are dry runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import (
    APPLY,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Ask,
    Compared,
    Found,
    differences,
    shown,
)
from peer.server import Server

PODS = "/api/v1/namespaces/{ns}/pods"
POD = f"{PODS}/p"
DRY = "?dryRun=All"
MERGE, STRATEGIC, JSON = ({"Content_Type": kind} for kind in (MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH))
APPLIED = {"Content_Type": APPLY}
BY_MANAGER = f"{DRY}&fieldManager=peer&force=true"
ALWAYS = {"restartPolicy": "Always"}
Data = dict[str, Any]


def container(name: str = "c", **more: Any) -> Data:
    return {"name": name, "image": "i:1", **more}


def amounts(requests: Any = None, limits: Any = None, **more: Any) -> Data:
    told = {"requests": requests, "limits": limits}
    return {**{side: said for side, said in told.items() if said is not None}, **more}


def sized(name: str = "c", requests: Any = None, limits: Any = None, **more: Any) -> Data:
    return container(name, resources=amounts(requests, limits), **more)


def pod(*containers: Data, meta: Mapping[str, Any] | None = None, **spec: Any) -> Data:
    return {
        "metadata": {"name": "p", **(meta or {})},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": list(containers) or [container()],
            **spec,
        },
    }


def policies(cpu: str, memory: str) -> list[Data]:
    return [
        {"resourceName": name, "restartPolicy": said} for name, said in (("cpu", cpu), ("memory", memory))
    ]


NO, RESTART = "NotRequired", "RestartContainer"
SMALL, LARGE = {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"}
GATES = [{"name": "a.test/one"}, {"name": "two"}]
MIRRORED = {"annotations": {"kubernetes.io/config.mirror": "x"}}
CLAIMS = [{"name": "d", "resourceClaimName": "x"}]
VOLUMES = [{"name": "v", "emptyDir": {}}]


def running(*names: str, key: str = "containerStatuses", **more: Any) -> Data:
    began = "2026-01-02T03:04:05Z"
    return {
        "phase": "Running",
        key: [
            {
                "name": name,
                "image": "i:1",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": began}},
                **more,
            }
            for name in names
        ],
    }


# What `resize` may change.

SIZED: dict[str, tuple[Data, Data]] = {
    "best effort": (pod(), {}),
    "requests": (pod(sized("c", {"cpu": "100m"})), {}),
    "burstable": (pod(sized("c", SMALL, LARGE)), {}),
    "guaranteed": (pod(sized("c", SMALL, SMALL)), {}),
    "restarted for memory": (pod(sized("c", SMALL, LARGE, resizePolicy=policies(NO, RESTART))), {}),
    "never restarted": (pod(sized("c", SMALL, LARGE), restartPolicy="Never"), {}),
    "two": (pod(sized("c", SMALL, SMALL), sized("d", SMALL, LARGE)), {}),
    "with first ones": (
        pod(
            sized("c", SMALL, SMALL),
            initContainers=[
                sized("i", SMALL, SMALL),
                sized("s", SMALL, SMALL, **ALWAYS),
                sized("j", SMALL, SMALL, resizePolicy=policies(NO, NO)),
                sized("t", SMALL, SMALL, resizePolicy=policies(RESTART, NO), **ALWAYS),
            ],
        ),
        {},
    ),
    "as a whole": (pod(container(), resources=amounts(SMALL, LARGE)), {}),
    "as a guaranteed whole": (pod(container(), resources=amounts(LARGE, LARGE)), {}),
    "as a whole and in parts": (
        pod(
            sized("c", SMALL, SMALL), container("d"), resources=amounts(LARGE, {"cpu": "1", "memory": "1Gi"})
        ),
        {},
    ),
    "as an empty whole": (pod(resources={}), {}),
    "with nothing as a whole": (pod(sized("c", SMALL, LARGE), resources=amounts({}, {})), {}),
    "as a whole of huge pages": (
        pod(sized("c", {**SMALL, "hugepages-2Mi": "4Mi"}, {**LARGE, "hugepages-2Mi": "4Mi"}), resources={}),
        {},
    ),
    "with more resources": (
        pod(
            sized(
                "c",
                {**SMALL, "ephemeral-storage": "1Gi", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"},
                {**LARGE, "ephemeral-storage": "2Gi", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"},
            )
        ),
        {},
    ),
    "with claims": (
        pod(container(resources=amounts(SMALL, LARGE, claims=[{"name": "d"}])), resourceClaims=CLAIMS),
        {},
    ),
    "for windows": (pod(sized("c", SMALL, LARGE), os={"name": "windows"}), {}),
    "of a file": (pod(sized("c", SMALL, LARGE), meta=MIRRORED, nodeName="n"), {}),
    "on an old node": (pod(sized("c", SMALL, LARGE), nodeName="n"), running("c")),
    "on a node": (
        pod(sized("c", SMALL, LARGE), nodeName="n"),
        running("c", resources=amounts(SMALL, LARGE), allocatedResources=SMALL),
    ),
    "with two on an old node": (
        pod(sized("c", SMALL, LARGE), container("d"), nodeName="n"),
        {
            "containerStatuses": running("c", resources={})["containerStatuses"]
            + running("d")["containerStatuses"]
        },
    ),
    "that ended": (pod(sized("c", SMALL, LARGE), nodeName="n"), {"phase": "Succeeded"}),
    "that failed": (pod(sized("c", SMALL, LARGE), nodeName="n"), {"phase": "Failed"}),
    "not scheduled": (pod(sized("c", SMALL, LARGE), schedulingGates=GATES), {}),
    "of no least": (pod(sized("c", {"cpu": "0"}, {"cpu": "0", "memory": "0"})), {}),
    "with allocated claims": (
        pod(sized("c", SMALL, LARGE), resourceClaims=CLAIMS),
        {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "x", "containers": ["c"]}]},
    ),
}

OF_ONE: list[Data] = [
    amounts({"cpu": "150m"}),
    amounts({"cpu": "50m", "memory": "32Mi"}),
    amounts({"cpu": "100m"}, {"cpu": "100m"}),
    amounts(None, {"cpu": "1"}),
    amounts(None, {"memory": "96Mi"}),
    amounts(None, {"memory": "256Mi"}),
    amounts(LARGE, LARGE),
    amounts({"cpu": "0.2"}, {"cpu": "0.2"}),
    amounts({"cpu": "0", "memory": "0"}),
    amounts({"cpu": "0", "memory": "0"}, {"cpu": "0", "memory": "0"}),
    amounts({"cpu": None}),
    amounts({"memory": None}, {"memory": None}),
    amounts(None, {"cpu": None}),
    amounts(None, {"cpu": None, "memory": None}),
    {"requests": None},
    {"limits": None},
    {"requests": None, "limits": None},
    amounts({"cpu": "9"}),
    amounts({"cpu": "-1"}),
    amounts({"cpu": "100500u"}),
    amounts({"ephemeral-storage": "1Gi"}),
    amounts({"ephemeral-storage": "1536Mi"}, {"ephemeral-storage": "3Gi"}),
    amounts({"ephemeral-storage": None}, {"ephemeral-storage": None}),
    amounts({"example.com/gpu": "2"}, {"example.com/gpu": "2"}),
    amounts({"example.com/gpu": None}, {"example.com/gpu": None}),
    amounts({"hugepages-2Mi": "8Mi"}, {"hugepages-2Mi": "8Mi"}),
    amounts({"storage": "1"}),
    amounts(None, {"x": "1"}),
    {"claims": [{"name": "d", "request": "r"}]},
    {"claims": [{"name": "other"}]},
    {"claims": None},
]
OF_THE_WHOLE: list[Any] = [
    None,
    {},
    amounts({"cpu": "150m"}),
    amounts({"cpu": "50m"}, {"cpu": "300m"}),
    amounts({"cpu": "1"}, {"cpu": "1"}),
    amounts(LARGE, LARGE),
    amounts(SMALL, SMALL),
    amounts({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
    amounts({"cpu": None}),
    amounts(None, {"memory": None}),
    {"limits": None},
    {"requests": None},
    {"requests": None, "limits": None},
    amounts({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}),
    amounts({"ephemeral-storage": "1"}),
    amounts({"cpu": "-1"}),
    {"claims": [{"name": "d"}]},
]


def of_containers(*changes: Data, **more: Any) -> Data:
    return {"spec": {"containers": list(changes), **more}}


ALONG: list[Data] = [
    {},
    {"spec": {}},
    {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a.test/b"]}},
    {
        "metadata": {"labels": {"-": "b"}},
        **of_containers({"name": "c", "resources": amounts({"cpu": "110m"})}),
    },
    {"metadata": {"uid": "x"}},
    {"metadata": {"resourceVersion": "1"}},
    {"metadata": {"name": "other"}},
    {"metadata": {"generation": 7, "deletionGracePeriodSeconds": 3}},
    {"status": {"phase": "Failed", "observedGeneration": 9, "resize": "Infeasible"}},
    {"status": {"qosClass": "BestEffort"}},
    {"spec": {"activeDeadlineSeconds": 5, "nodeName": "other", "tolerations": [{"operator": "Exists"}]}},
    {"spec": {"terminationGracePeriodSeconds": -3, "restartPolicy": "x"}},
    {"spec": {"nodeSelector": {"a": "b"}, "schedulingGates": None, "overhead": {"cpu": "1"}}},
    of_containers({"name": "c", "image": "j:2"}),
    of_containers({"name": "c", "image": ""}),
    of_containers({"name": "c", "image": "j", "resources": amounts({"cpu": "110m"})}),
    of_containers({"name": "c", "env": [{"name": "A"}]}),
    of_containers({"name": "c", "ports": [{"containerPort": 80}]}),
    of_containers({"name": "c", "restartPolicy": "Never"}),
    *(
        of_containers({"name": "c", "resizePolicy": said})
        for said in (
            policies(NO, RESTART),
            policies(RESTART, NO),
            policies(NO, NO),
            policies("x", NO),
            [{"resourceName": "ephemeral-storage", "restartPolicy": NO}],
            [{"resourceName": "cpu"}],
            [],
            None,
        )
    ),
    of_containers(
        {"name": "c", "resizePolicy": policies(NO, RESTART), "resources": amounts({"cpu": "110m"})}
    ),
    of_containers({"name": "new", "image": "i:1"}),
    of_containers({"name": "new"}),
    of_containers({"name": "c", "$patch": "delete"}),
    of_containers({"name": "d", "$patch": "delete"}),
    of_containers({"name": "d", "resources": amounts({"cpu": "110m"}, {"cpu": "250m"})}),
    of_containers(
        {"name": "c", "resources": amounts({"cpu": "110m"}, {"cpu": "110m"})},
        {"name": "d", "resources": amounts({"cpu": "120m"}, {"cpu": "120m"})},
    ),
    {"spec": {"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]}},
    {"spec": {"ephemeralContainers": [{"name": "e", "image": "i:1"}]}},
    {"spec": {"initContainers": [{"name": "new", "image": "i:1"}]}},
    {"spec": {"initContainers": [{"name": "i", "$patch": "delete"}]}},
    {"spec": {"initContainers": None}},
    {"spec": {"$setElementOrder/initContainers": [{"name": name} for name in "stij"]}},
    *(
        {"spec": {"initContainers": [{"name": name, "resources": said}]}}
        for name in "isjt"
        for said in (
            amounts({"cpu": "110m"}, {"cpu": "110m"}),
            amounts({"memory": "32Mi"}, {"memory": "32Mi"}),
            amounts({"cpu": "50m"}),
            amounts({"cpu": None}, {"cpu": None}),
            amounts({"ephemeral-storage": "1"}),
        )
    ),
    *(
        {"spec": {"initContainers": [{"name": name, **said}]}}
        for name in "is"
        for said in (
            {"image": "j"},
            {"restartPolicy": None},
            {"resizePolicy": policies(RESTART, RESTART)},
            {"resizePolicy": policies(NO, RESTART), "resources": amounts({"cpu": "110m"}, {"cpu": "110m"})},
        )
    ),
]  # fmt: skip
"""Of which those of no container of the pod add one."""
WHOLLY = ("with first ones", "burstable", "two", "as a whole and in parts")


def resizes(made: Data, status: Data, *, everything: bool) -> Iterator[Ask]:
    yield Ask("POST", PODS, made)
    if status:
        yield Ask("PATCH", f"{POD}/status", {"status": status}, MERGE)
    resize = f"{POD}/resize{DRY}"
    yield Ask("GET", f"{POD}/resize")
    each = 1 if everything else 2
    changes = [of_containers({"name": "c", "resources": said}) for said in OF_ONE[::each]]
    changes += [{"spec": {"resources": said}} for said in OF_THE_WHOLE]
    changes += [
        {
            "spec": {
                "resources": said,
                "containers": [{"name": "c", "resources": amounts({"cpu": "150m"}, {"cpu": "150m"})}],
            }
        }
        for said in OF_THE_WHOLE[2:6]
    ]
    yield from (Ask("PATCH", resize, change, STRATEGIC, str(change)) for change in changes)
    along = ALONG if everything else ALONG[::4]
    yield from (Ask("PATCH", resize, change, STRATEGIC, str(change)) for change in along)
    for requests in ({"cpu": "150m"}, {"cpu": "150m", "memory": "64Mi"}):
        resized = of_containers(sized("c", requests, LARGE))
        yield Ask("PATCH", resize, resized, MERGE, str(resized))
        yield Ask("PUT", resize, {"metadata": {"name": "p"}, **resized})
        full = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **resized}
        yield Ask("PATCH", f"{POD}/resize{BY_MANAGER}", full, APPLIED)
    yield Ask("PUT", resize, made)
    yield Ask("PATCH", resize, [{"op": "remove", "path": "/spec/containers/0/resources"}], JSON)
    for part in ("spec", "status", "metadata"):
        yield Ask("PATCH", resize, {part: None}, MERGE, part)
    # What of it is kept, and by whom.
    changed = of_containers({"name": "c", "resources": amounts({"cpu": "110m"}, {"cpu": "150m"})})
    yield Ask("PATCH", f"{POD}/resize", changed, STRATEGIC)
    yield Ask("PATCH", f"{POD}/resize", changed, STRATEGIC)
    yield Ask("GET", POD)


TOLD = re.compile(r"\n(@@|[-+] )(.|\n)*")


def is_a_diff(one: Found) -> bool:
    """What has changed of a debugging container Kubernetes shows by the names of its internal types."""
    said = [TOLD.sub("", str(told)) for told in (one.kubernetes, one.podling)]
    return one.path == "body.message" and said[0] == said[1] and "ephemeral containers" in said[0]


def is_of_another_order(one: Found) -> bool:
    """Kubernetes looks at cpu and memory, and at gates, in the order of one of Go's maps."""
    parts = []
    for said in (one.kubernetes, one.podling):
        begin, _, told = str(said).removesuffix("]").partition(" is invalid: [")
        parts.append([begin, *sorted(f", {told}".split(", spec"))])
    said = str(one.kubernetes)
    is_of_a_map = ("[cpu]" in said and "[memory]" in said) or "found new scheduling gate" in said
    return one.path == "body.message" and is_of_a_map and parts[0] == parts[1]


# Of what size a pod is when it is made.

OWN_SIZES: list[Any] = [
    {},
    amounts({}, {}),
    amounts({"cpu": "0"}),
    amounts({"cpu": "-1"}),
    amounts({"ephemeral-storage": "1"}),
    amounts({"cpu": "1"}),
    amounts(None, {"cpu": "1"}),
    amounts(None, {"memory": "1Gi"}),
    amounts({"memory": "1Gi"}, {"cpu": "1"}),
    amounts({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
    amounts(
        {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"},
        {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"},
    ),
    amounts(None, {"hugepages-2Mi": "2Mi"}),
    amounts(None, {"hugepages-2Mi": "8Mi"}),
    amounts({"hugepages-2Mi": "8Mi"}),
    amounts({"hugepages-2Mi": "4Mi"}),
    amounts({"cpu": "1", "hugepages-2Mi": "4Mi"}),
    amounts({"cpu": "1", "hugepages-2Mi": "8Mi"}),
    amounts({"hugepages-1Gi": "1Gi"}),
    amounts({"cpu": "1"}, {"hugepages-1Gi": "1Gi"}),
    amounts({"hugepages-2Mi": "8Mi"}, {"cpu": "1"}),
    amounts({"hugepages-2Mi": "4Mi"}, {"hugepages-1Gi": "1Gi", "cpu": "1"}),
]
RULED: Data = {
    "restartPolicy": "Never",
    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
}
RESTARTED: list[Data] = [
    {},
    *({"restartPolicy": said} for said in ("Always", "OnFailure", "Never")),
    RULED,
]
PAGES = {"hugepages-2Mi": "4Mi"}
MADE: list[tuple[str, Data]] = [
    *((f"{own}", pod(resources=own)) for own in OWN_SIZES),
    *((f"{own} of {SMALL}", pod(sized("c", SMALL, SMALL), resources=own)) for own in OWN_SIZES),
    *(
        (f"{own} of pages", pod(sized("c", {"cpu": "100m", **PAGES}, PAGES), resources=own))
        for own in OWN_SIZES
    ),
    *(
        (
            f"{own} of first pages",
            pod(initContainers=[sized("i", {"cpu": "1", **PAGES}, PAGES)], resources=own),
        )
        for own in OWN_SIZES
    ),
    *(
        (
            f"{policy} {one} {own}",
            pod(container(resizePolicy=policies(NO, RESTART), **one), restartPolicy=policy, **own),
        )
        for policy in ("Always", "OnFailure", "Never")
        for one in RESTARTED
        for own in ({}, {"resources": amounts(LARGE)})
    ),
    *(
        (
            f"{policy} {one} {sizes}",
            pod(initContainers=[container("i", resizePolicy=sizes, **one)], restartPolicy=policy),
        )
        for policy in ("Always", "Never")
        for one in ({}, *({"restartPolicy": said} for said in ("Always", "OnFailure", "Never")))
        for sizes in (
            policies(RESTART, RESTART),
            policies(NO, RESTART),
            policies("", "x"),
            policies(NO, NO),
            policies(RESTART, NO)[:1] * 2,
        )
    ),
    *(
        (
            f"an amount in parts of {part}",
            pod(
                container(
                    env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", **part}}}]
                )
            ),
        )
        for part in ({}, {"divisor": "0"}, {"divisor": "1m"}, {"divisor": None})
    ),
    (
        "an amount in a volume",
        pod(
            volumes=[
                {
                    "name": "v",
                    "downwardAPI": {
                        "items": [
                            {
                                "path": "a",
                                "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"},
                            }
                        ]
                    },
                },
                {
                    "name": "w",
                    "projected": {
                        "sources": [
                            {
                                "downwardAPI": {
                                    "items": [
                                        {
                                            "path": "a",
                                            "resourceFieldRef": {
                                                "containerName": "c",
                                                "resource": "limits.cpu",
                                            },
                                        }
                                    ]
                                }
                            }
                        ]
                    },
                },
            ]
        ),
    ),
    ("guaranteed but for one", pod(sized("c", SMALL, SMALL), initContainers=[container("i")])),
    (
        "probes of first ones, too",
        pod(
            initContainers=[
                container(
                    "i",
                    resizePolicy=policies(RESTART, NO),
                    livenessProbe={"tcpSocket": {"port": 1}},
                    startupProbe={"tcpSocket": {"port": 1}},
                    lifecycle={"preStop": {"sleep": {"seconds": 1}}},
                    restartPolicyRules=[{"action": "Restart"}],
                )
            ]
        ),
    ),
    ("less than nothing", pod(sized("c", {"cpu": "-1"}), sized("d", {"cpu": "1"}))),
]


def test_sizes(kubernetes: Server, podling: Server) -> None:
    templates = "/api/v1/namespaces/{ns}/podtemplates"
    asks = []
    for what, made in MADE:
        asks.append(Ask("POST", f"{PODS}{DRY}", made, what=what))
        labelled = {"metadata": {"labels": {"a": "b"}}, "spec": made["spec"]}
        asks.append(
            Ask("POST", f"{templates}{DRY}", {"metadata": {"name": "t"}, "template": labelled}, what=what)
        )
    _compare("sizes", asks, "sizes-of-pods", kubernetes, podling)


@pytest.mark.parametrize("name", SIZED)
def test_resize(name: str, kubernetes: Server, podling: Server) -> None:
    asks = [*resizes(*SIZED[name], everything=name in WHOLLY)]
    _compare(name, asks, f"resized-{name.replace(' ', '-')}", kubernetes, podling)


def _compare(name: str, asks: list[Ask], namespace: str, kubernetes: Server, podling: Server) -> None:
    compared = Compared(name, asks, apart=True)
    found = unnamed(differences(compared, namespace, kubernetes, podling))
    same = {one.step for one in found if is_of_another_order(one) or is_a_diff(one)}
    found = [one for one in found if one.step not in same]
    assert not found, f"\n{shown(compared, found)}"


# Which debugging containers may be added.

DEBUGGED: dict[str, tuple[Data, Data]] = {
    "plain": (pod(), {}),
    "full": (
        pod(
            container("c", volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            initContainers=[container("i"), container("s", **ALWAYS)],
            volumes=[*VOLUMES, {"name": "w", "secret": {"secretName": "s"}}],
            resourceClaims=CLAIMS,
            shareProcessNamespace=True,
        ),
        {},
    ),
    "of a file": (pod(meta=MIRRORED, nodeName="n"), {}),
    "for windows": (pod(os={"name": "windows"}), {}),
    "of a user": (pod(securityContext={"runAsNonRoot": True, "runAsUser": 0}, hostNetwork=True), {}),
    "that ended": (pod(nodeName="n"), {"phase": "Failed"}),
    "that runs": (
        pod(nodeName="n"),
        {**running("c"), **running("gone", key="ephemeralContainerStatuses")},
    ),
    "not scheduled": (pod(schedulingGates=GATES), {}),
}
PROBE = {"tcpSocket": {"port": 1}}
ENTRIES: list[Any] = [
    {},
    {"name": "f", "image": "i:1", "targetContainerName": "c"},
    *({"targetContainerName": target} for target in ("i", "s", "e", "f", "none", "", None, "Bad_")),
    *({"name": name} for name in ("c", "i", "e", "gone", "", "Bad_", "a" * 64, None)),
    *({"image": image} for image in ("", " i", None, "j:2", "UPPER")),
    {"imagePullPolicy": "Always"},
    {"imagePullPolicy": "x"},
    {"terminationMessagePolicy": "x"},
    {"terminationMessagePolicy": "FallbackToLogsOnError", "terminationMessagePath": "/x"},
    {"command": ["a"], "args": ["b"], "workingDir": "/", "stdin": True, "stdinOnce": True, "tty": True},
    {"ports": [{"containerPort": 80}]},
    {"ports": [{"containerPort": 0}]},
    {"ports": []},
    {"livenessProbe": PROBE},
    {"readinessProbe": PROBE, "startupProbe": PROBE},
    {"livenessProbe": {}},
    {"lifecycle": {}},
    {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
    {"resources": {}},
    {"resources": amounts({"cpu": "1"})},
    {"resources": amounts({"cpu": "1"}, {"cpu": "500m"})},
    {"resources": {"claims": [{"name": "d"}]}},
    {"resizePolicy": policies(NO, NO)},
    {"resizePolicy": []},
    {"restartPolicy": "Always"},
    {"restartPolicy": "x"},
    {"restartPolicy": ""},
    {"restartPolicyRules": [{"action": "Restart"}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a"}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "a"}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"}]},
    {"volumeMounts": [{"name": "none", "mountPath": ""}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]},
    {"volumeDevices": [{"name": "v", "devicePath": "/v"}]},
    {"env": [{"name": "A", "value": "b"}], "envFrom": [{"secretRef": {"name": "s"}}]},
    {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
    {"env": [{"name": "", "valueFrom": {}}]},
    {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
    {"securityContext": {"privileged": True, "capabilities": {"add": ["SYS_PTRACE"]}}},
    {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
    {"securityContext": {"windowsOptions": {"runAsUserName": "a"}}},
    {"securityContext": {"runAsUser": -1, "procMount": "x"}},
    {"securityContext": {"appArmorProfile": {"type": "Localhost"}}},
    {"unknown": 1},
]
"""Each in place of what is usual in an entry named `e`."""


def entry(name: str = "e", **more: Any) -> Data:
    return {"name": name, "image": "i:1", **more}


def of_entries(*entries: Data) -> Data:
    return {"spec": {"ephemeralContainers": list(entries)}}


def debuggings(made: Data, status: Data) -> Iterator[Ask]:
    place = f"{POD}/ephemeralcontainers"
    yield Ask("GET", place)
    yield Ask("POST", PODS, made)
    if status:
        yield Ask("PATCH", f"{POD}/status", {"status": status}, MERGE)
    yield Ask("GET", place)
    for said in ENTRIES:
        yield Ask("PATCH", f"{place}{DRY}", of_entries(entry(**said)), STRATEGIC, str(said))
    yield Ask("PATCH", f"{place}{DRY}", of_entries(entry("e"), entry("e")), MERGE, "twice")
    yield Ask("PATCH", f"{place}{DRY}", of_entries(entry("e"), entry("c"), entry("")), MERGE, "names")
    yield Ask("PATCH", f"{place}{DRY}", of_entries(entry("e", targetContainerName="f"), entry("f")), MERGE)
    along: list[Data] = [
        {},
        {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a.test/b"]}},
        {"metadata": {"labels": {"-": "b"}, "uid": "x"}},
        {"metadata": {"resourceVersion": "1"}},
        {"metadata": {"name": "other"}},
        {"status": {"phase": "Failed"}},
        {"spec": {"containers": [{"name": "c", "image": "j"}], "activeDeadlineSeconds": 3}},
        {"spec": {"containers": [{"name": "new", "image": "i"}], "nodeName": "n", "initContainers": None}},
        {"spec": {"containers": None}},
    ]
    for kind in (MERGE, STRATEGIC):
        yield from (Ask("PATCH", f"{place}{DRY}", one, kind, str(one)) for one in along)
        yield from (
            Ask(
                "PATCH",
                f"{place}{DRY}",
                {**one, "spec": {**one.get("spec", {}), **of_entries(entry())["spec"]}},
                kind,
            )
            for one in along
        )
    yield Ask("PUT", f"{place}{DRY}", {"metadata": {"name": "p"}, **of_entries(entry())})
    yield Ask("PUT", f"{place}{DRY}", {"metadata": {"name": "p"}, "ephemeralContainers": [entry()]})
    yield Ask(
        "PUT",
        f"{place}{DRY}",
        {
            "apiVersion": "v1",
            "kind": "EphemeralContainers",
            "metadata": {"name": "p"},
            "ephemeralContainers": [entry()],
        },
    )
    yield Ask("PUT", f"{place}{DRY}", {**made, "spec": {**made["spec"], **of_entries(entry())["spec"]}})
    full = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **of_entries(entry())}
    yield Ask("PATCH", f"{place}{BY_MANAGER}", full, APPLIED)
    yield Ask("PATCH", f"{POD}{BY_MANAGER}", full, APPLIED)
    yield Ask("PATCH", f"{POD}{DRY}", of_entries(entry()), STRATEGIC)
    yield Ask("PATCH", f"{POD}/resize{DRY}", of_entries(entry()), STRATEGIC)
    # Now there are some.
    kept = [entry("e", targetContainerName="c"), entry("f", env=[{"name": "A", "value": "b"}])]
    yield Ask("PATCH", place, of_entries(*kept), STRATEGIC)
    yield Ask("GET", place)
    for changed in (
        of_entries(entry("g")),
        of_entries(entry("e", image="j")),
        of_entries(entry("e", image="")),
        of_entries(entry("e", command=["x"]), entry("f", env=None)),
        of_entries(entry("e", ports=[{"containerPort": 80}])),
        of_entries(entry("c")),
        of_entries({"name": "e", "targetContainerName": None}),
        of_entries({"name": "e", "$patch": "delete"}),
        of_entries({"name": "f", "$patch": "delete"}, entry("g")),
        {"spec": {"ephemeralContainers": None}},
        {"spec": {"$setElementOrder/ephemeralContainers": [{"name": "f"}, {"name": "e"}]}},
    ):
        yield Ask("PATCH", f"{place}{DRY}", changed, STRATEGIC, str(changed))
        yield Ask("PATCH", f"{POD}{DRY}", changed, STRATEGIC, str(changed))
    for listed in ([], kept[:1], kept[::-1], [*kept, kept[0]], [kept[0], *kept], [*kept, entry("g")]):
        yield Ask("PATCH", f"{place}{DRY}", of_entries(*listed), MERGE, str(listed))
        yield Ask("PUT", f"{place}{DRY}", {**made, "spec": {**made["spec"], **of_entries(*listed)["spec"]}})
    yield Ask("PATCH", f"{place}{BY_MANAGER}", full, APPLIED)
    yield Ask("PATCH", f"{POD}{DRY}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    yield Ask("PUT", f"{POD}{DRY}", made)
    yield Ask("PATCH", place, of_entries(entry("e", targetContainerName="c")), STRATEGIC)
    yield Ask("DELETE", place)
    yield Ask("POST", place, full)
    yield Ask("GET", POD)


@pytest.mark.parametrize("name", DEBUGGED)
def test_ephemeral_containers(name: str, kubernetes: Server, podling: Server) -> None:
    asks = [*debuggings(*DEBUGGED[name])]
    _compare(name, asks, f"debugged-{name.replace(' ', '-')}", kubernetes, podling)


# What an update of the pod itself may change.

TOLERATED: list[Data] = [
    {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
    {"key": "b", "value": "c"},
]
TERM: Data = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
MORE = {"key": "c", "operator": "Exists"}
FIELDS: Data = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}


def placed(*terms: Data, preferred: Any = None, **more: Any) -> Data:
    node: Data = {}
    if terms:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": list(terms)}
    if preferred is not None:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {"nodeAffinity": node, **more}


PREFERRED = [{"weight": 1, "preference": TERM}]
APART = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}}}
]}}  # fmt: skip
OLD: dict[str, tuple[Data, Data]] = {
    "plain": (pod(initContainers=[container("i")]), {}),
    "with much": (
        pod(
            container(env=[{"name": "A", "value": "b"}], ports=[{"containerPort": 80}]),
            tolerations=TOLERATED,
            activeDeadlineSeconds=100,
            nodeSelector={"a": "b"},
            affinity=placed(TERM),
            volumes=VOLUMES,
            terminationGracePeriodSeconds=1,
        ),
        {},
    ),
    "gated": (pod(schedulingGates=GATES, tolerations=TOLERATED), {}),
    "gated and placed": (
        pod(
            schedulingGates=GATES,
            nodeSelector={"a": "b"},
            affinity=placed(TERM, FIELDS, preferred=PREFERRED, **APART),
        ),
        {},
    ),
    "gated and placed nowhere": (pod(schedulingGates=GATES, affinity=placed({})), {}),
    "gated with nothing": (pod(schedulingGates=GATES, affinity={}), {}),
    "gated with nothing about nodes": (pod(schedulingGates=GATES, affinity={"nodeAffinity": {}}), {}),
    "gated with a preference": (pod(schedulingGates=GATES, affinity=placed(preferred=PREFERRED)), {}),
    "gated and apart": (pod(schedulingGates=GATES[:1], affinity=APART), {}),
    "that runs": (pod(nodeName="n"), running("c")),
    "that ended": (pod(nodeName="n", activeDeadlineSeconds=10), {"phase": "Succeeded"}),
    "of a file": (pod(meta=MIRRORED, nodeName="n"), {}),
    "without a grace": (pod(terminationGracePeriodSeconds=0, activeDeadlineSeconds=1), {}),
    "with a negative grace": (pod(terminationGracePeriodSeconds=-7), {}),
}
TERMS: list[list[Data]] = [
    [TERM],
    [TERM, FIELDS],
    [FIELDS, TERM],
    [TERM, FIELDS, TERM],
    [{"matchExpressions": [*TERM["matchExpressions"], MORE]}, FIELDS],
    [{"matchExpressions": [MORE, *TERM["matchExpressions"]]}, FIELDS],
    [{**TERM, **FIELDS}, FIELDS],
    [{"matchExpressions": [MORE]}, FIELDS],
    [{}],
    [{"matchExpressions": [{"key": "a", "operator": "x"}]}],
]
AFFINITIES: list[Any] = [
    None,
    {},
    {"nodeAffinity": None},
    {"podAntiAffinity": None},
    APART,
    {"podAffinity": {}},
    *(placed(*terms) for terms in TERMS),
    placed(preferred=[]),
    placed(preferred=[{"weight": 2, "preference": TERM}]),
    placed(TERM, preferred=[{"weight": 0, "preference": TERM}]),
    placed(TERM, FIELDS, preferred=None, podAntiAffinity=None),
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
]
SELECTORS: list[Any] = [None, {}, {"a": None}, {"a": "c"}, {"c": "d"}, {"-": "d"}]
WANTED: list[Any] = [
    {},
    *({"activeDeadlineSeconds": told} for told in (None, 0, 1, 99, 100, 101, -1, 2147483647, 2147483648)),
    *({"terminationGracePeriodSeconds": told} for told in (None, 0, 1, 30, -1, 2, 9223372036854775807)),
    *(
        {"tolerations": told}
        for told in (
            None,
            [],
            TOLERATED,
            TOLERATED[::-1],
            TOLERATED[:1],
            [*TOLERATED, {"key": "n", "operator": "Exists"}],
            [*TOLERATED, TOLERATED[0]],
            [{**TOLERATED[0], "tolerationSeconds": 5}, TOLERATED[1]],
            [{**TOLERATED[0], "tolerationSeconds": None}, TOLERATED[1]],
            [{**TOLERATED[0], "tolerationSeconds": -5}, TOLERATED[1]],
            [{**TOLERATED[0], "effect": "NoSchedule"}, TOLERATED[1]],
            [TOLERATED[0], {**TOLERATED[1], "operator": "Equal"}],
            [TOLERATED[0], {**TOLERATED[1], "tolerationSeconds": 3}],
            [{"operator": "Exists"}],
            [*TOLERATED, {"key": "n", "operator": "Lt", "value": "5"}],
            [*TOLERATED, {"key": "n", "operator": "x"}],
        )
    ),
    *(
        {"schedulingGates": told}
        for told in (
            None,
            [],
            GATES[:1],
            GATES[1:],
            GATES[::-1],
            GATES,
            [*GATES, {"name": "three"}],
            [{"name": "other"}],
            [{"name": ""}],
            [GATES[0], GATES[0]],
        )
    ),
    *({"nodeSelector": told} for told in SELECTORS),
    {"nodeSelector": {"c": "d"}, "schedulingGates": None},
    {"nodeSelector": {"c": "d"}, "schedulingGates": GATES[:1]},
    {"affinity": placed(TERM), "schedulingGates": None},
    {"affinity": placed(TERM), "schedulingGates": GATES[:1]},
    *({"affinity": told} for told in AFFINITIES),
    {"nodeName": "other"},
    {"nodeName": None},
    {"nodeName": "n", "schedulingGates": None},
    {"restartPolicy": "Never"},
    {"restartPolicy": "x"},
    {"dnsPolicy": None},
    {"serviceAccountName": "other"},
    {"serviceAccount": "other"},
    {"hostNetwork": True},
    {"priority": 5},
    {"priorityClassName": "none"},
    {"schedulerName": "other"},
    {"hostname": "a", "subdomain": "b"},
    {"hostname": "-"},
    {"os": {"name": "linux"}},
    {"overhead": {"cpu": "1"}},
    {"resources": {}},
    {"resources": amounts({"cpu": "1"})},
    {"resourceClaims": CLAIMS},
    {"volumes": [{"name": "new", "emptyDir": {}}]},
    {"volumes": None},
    {"readinessGates": [{"conditionType": "a.test/b"}]},
    {"enableServiceLinks": False},
    {"automountServiceAccountToken": None},
    {"securityContext": {"runAsUser": 5}},
    {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
    {"ephemeralContainers": [{"name": "e", "image": "i"}]},
    {"containers": []},
    {"containers": None},
    {"initContainers": None},
    {"initContainers": [container("i", image="j")]},
    {"initContainers": [container("i", image="")]},
    {"initContainers": [container("i", image=" j")]},
    {"initContainers": [container("new")]},
    {"initContainers": [container("i", restartPolicy="Always")]},
    {"activeDeadlineSeconds": 101, "tolerations": [], "nodeName": "other"},
    {
        "activeDeadlineSeconds": None,
        "tolerations": [],
        "schedulingGates": [{"name": "other"}],
        "nodeName": "m",
    },
    {"containers": [container(image="")], "activeDeadlineSeconds": -1},
]
IMAGES: list[Data] = [
    {"image": "j:2"},
    {"image": "i"},
    {"image": ""},
    {"image": None},
    {"image": " j"},
    {"image": "j", "imagePullPolicy": "Never"},
    {"imagePullPolicy": "Always"},
    {"name": "d"},
    {"command": ["x"]},
    {"env": [{"name": "B", "value": "c"}]},
    {"env": None},
    {"ports": [{"containerPort": 81}]},
    {"resources": amounts({"cpu": "1"})},
    {"resources": {"claims": [{"name": "d"}]}},
    {"resizePolicy": policies(NO, NO)},
    {"livenessProbe": PROBE},
    {"securityContext": {"privileged": True}},
    {"restartPolicy": "Never"},
    {"terminationMessagePath": "/x"},
    {"$patch": "delete"},
]
METADATA: list[Any] = [
    {"labels": {"a": "b"}},
    {"labels": {"-": "b"}, "annotations": {"_": "b"}},
    {"annotations": {"a": "b"}},
    {"annotations": {"kubernetes.io/config.mirror": "y"}},
    {"annotations": {"kubernetes.io/config.mirror": None}},
    {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}},
    {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}},
    {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}},
    {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "5"}},
    {"annotations": {"scheduler.alpha.kubernetes.io/preferAvoidPods": "x"}},
    {"finalizers": ["a.test/b"]},
    {"finalizers": ["b"]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]},
    {"generation": 7},
    {"generation": -1},
    {"uid": "x"},
    {"creationTimestamp": None},
    {"creationTimestamp": "2026-01-02T03:04:05Z"},
    {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 5},
    {"deletionGracePeriodSeconds": 5},
    {"generateName": "x-"},
    {"namespace": "other"},
    {"name": "other"},
    {"resourceVersion": "1"},
    {"resourceVersion": "0"},
    {"selfLink": "x"},
    {"managedFields": []},
    {"managedFields": [{}]},
    None,
]  # fmt: skip


def updates(made: Data, status: Data, *, everything: bool) -> Iterator[Ask]:
    yield Ask("POST", PODS, made)
    if status:
        yield Ask("PATCH", f"{POD}/status", {"status": status}, MERGE)
    dry = f"{POD}{DRY}"
    wanted = WANTED if everything else WANTED[::4]
    yield from (Ask("PATCH", dry, {"spec": one}, MERGE, str(one)) for one in wanted)
    yield from (
        Ask("PATCH", dry, of_containers({"name": "c", **one}), STRATEGIC, str(one))
        for one in IMAGES
        if "name" not in one
    )
    metas = METADATA if made["spec"].get("nodeName") else METADATA[::7]
    yield from (Ask("PATCH", dry, {"metadata": one}, MERGE, str(one)) for one in metas)
    yield Ask("PATCH", dry, {"spec": {"tolerations": [{"key": "n", "operator": "Exists"}]}}, STRATEGIC)
    yield Ask("PATCH", dry, {"status": {"phase": "Failed", "observedGeneration": 5}}, MERGE)
    yield Ask("PATCH", dry, {"spec": None}, MERGE)
    bare = {"metadata": {"name": "p"}, "spec": {"containers": [container(image="j")]}}
    yield Ask("PUT", dry, made)
    yield Ask("PUT", dry, bare)
    yield Ask("PATCH", f"{POD}{BY_MANAGER}", {"apiVersion": "v1", "kind": "Pod", **bare}, APPLIED)
    yield Ask(
        "PATCH",
        f"{POD}{BY_MANAGER}",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"activeDeadlineSeconds": 7}},
        APPLIED,
    )
    # What counts as a change of what is wanted.
    for kept in (
        {"metadata": {"labels": {"x": "y"}}},
        {"spec": {"containers": [{"name": "c", "image": "k:1"}]}},
        {"spec": {"containers": [{"name": "c", "image": "k:1"}]}},
        {"spec": {"tolerations": [{"key": "t", "operator": "Exists"}]}},
        {"spec": {"activeDeadlineSeconds": 1}},
        {"spec": {"schedulingGates": [{"name": "two", "$patch": "delete"}]}},
        {"spec": {"schedulingGates": [{"$patch": "replace"}]}},
        {"spec": {"nodeSelector": {"e": "f"}}},
        {"status": {"phase": "Failed"}},
    ):
        yield Ask("PATCH", POD, kept, STRATEGIC, str(kept))
    yield Ask("GET", POD)


@pytest.mark.parametrize("name", OLD)
def test_updates(name: str, kubernetes: Server, podling: Server) -> None:
    asks = [*updates(*OLD[name], everything="gated" in name or "with" in name or name == "plain")]
    _compare(name, asks, f"updated-{name.replace(' ', '-')}", kubernetes, podling)


# What may be written into its status.

ENDED = {"terminated": {"exitCode": 1, "reason": "Error"}}
ENDED_WELL = {"terminated": {"exitCode": 0}}
RUNS = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
WAITS = {"waiting": {"reason": "CrashLoopBackOff"}}
ALL_RULED = {
    "restartPolicy": "Never",
    "restartPolicyRules": [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    ],
}


def status_of(name: str, state: Any = None, **more: Any) -> Data:
    told = {"name": name, "image": "i:1", "imageID": "", "ready": False, "restartCount": 0, **more}
    return told if state is None else {**told, "state": state}


HELD: dict[str, tuple[Data, Data]] = {
    "plain": (pod(), {}),
    **{
        f"of {policy}": (
            pod(
                container(),
                container("w", restartPolicy="Always"),
                container("n", restartPolicy="Never"),
                container("o", restartPolicy="OnFailure"),
                container("r", **RULED),
                initContainers=[
                    container("i"),
                    container("s", **ALWAYS),
                    container("t", restartPolicy="Never"),
                ],
                restartPolicy=policy,
                nodeName="n",
            ),
            {},
        )
        for policy in ("Always", "OnFailure", "Never")
    },
    "of all at once": (
        pod(container(), container("a", **ALL_RULED), initContainers=[container("i")], restartPolicy="Never"),
        {},
    ),
    "with claims": (
        pod(
            container(
                resources=amounts(
                    {"example.com/gpu": "1", "cpu": "1"},
                    {"example.com/gpu": "1", "memory": "1Gi"},
                    claims=[{"name": "d", "request": "r"}, {"name": "e"}],
                )
            ),
            initContainers=[sized("i", {"example.com/nic": "1"}, {"example.com/nic": "1"})],
            resourceClaims=[*CLAIMS, {"name": "e", "resourceClaimTemplateName": "t"}],
        ),
        {},
    ),
    "for windows": (pod(os={"name": "windows"}), {}),
    "that ended": (pod(nodeName="n"), {"phase": "Succeeded"}),
    "with addresses": (
        pod(nodeName="n"),
        {"podIPs": [{"ip": "010.1.2.3"}, {"ip": "fd00::1"}], "podIP": "010.1.2.3", "hostIP": "10.1.2.3",
         "hostIPs": [{"ip": "10.1.2.3"}], "nominatedNodeName": "n", "observedGeneration": 1,
         "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]},
    ),
}  # fmt: skip
NAMES = "cwnorista"
STATES: list[Data] = [
    {"containerStatuses": []},
    {"containerStatuses": None, "initContainerStatuses": None, "ephemeralContainerStatuses": None},
    *(
        {"containerStatuses": [status_of(name, state) for name in "cwnora"]}
        for state in (RUNS, WAITS, ENDED, ENDED_WELL, {}, None, {**RUNS, **ENDED}, {**RUNS, **WAITS})
    ),
    *({"containerStatuses": [status_of("c", RUNS), status_of("c", state)]} for state in (RUNS, ENDED)),
    *(
        {"initContainerStatuses": [status_of(name, state) for name in "ist"]}
        for state in (RUNS, WAITS, ENDED)
    ),
    *({"ephemeralContainerStatuses": [status_of("e", state)]} for state in (RUNS, ENDED, {})),
    {"containerStatuses": [status_of("unknown", RUNS)]},
    {"containerStatuses": [status_of("", RUNS)]},
    {
        "containerStatuses": [
            status_of("c", RUNS, restartCount=-1, image="", lastState={"terminated": {"exitCode": 300}})
        ]
    },
    {"containerStatuses": [{"name": "c"}]},
]
IPS: list[Data] = [
    {"podIP": "10.1.2.3"},
    {"podIP": "x"},
    {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.4"}]},
    {"podIP": "", "podIPs": [{"ip": "10.1.2.4"}]},
    {"podIP": None, "podIPs": None},
    *(
        {"podIPs": [{"ip": ip} for ip in ips]}
        for ips in (
            ("10.1.2.3", "fd00::1"),
            ("fd00::1", "10.1.2.3"),
            ("10.1.2.3", "10.1.2.4"),
            ("fd00::1", "fd00::1"),
            ("10.1.2.3", "fd00::1", "10.1.2.4"),
            ("10.1.2.3", "x"),
            ("x", "y"),
            ("x",),
            ("",),
            ("010.1.2.3",),
            ("010.1.2.3", "fd00::1"),
            ("010.1.2.4", "fd00::1"),
            ("::ffff:10.1.2.3",),
            ("FD00::1",),
            ("fd00:0::1",),
            ("10.1.2.3/24",),
        )
    ),
    {"hostIP": "10.1.2.3"},
    {"hostIP": "x"},
    {"hostIP": "10.1.2.3", "hostIPs": None},
    *(
        {"hostIP": first, "hostIPs": [{"ip": ip} for ip in ips]}
        for first, ips in (
            ("10.1.2.3", ("10.1.2.3", "fd00::1")),
            ("10.1.2.3", ("10.1.2.4",)),
            ("", ("10.1.2.4",)),
            ("10.1.2.3", ("10.1.2.3", "10.1.2.4")),
            ("FD00::1", ("FD00::1",)),
            ("x", ("x",)),
            ("010.1.2.3", ("010.1.2.3", "fd00::1")),
            ("10.1.2.3", ("10.1.2.3", "fd00::1", "fd00::2")),
        )
    ),
]
CONDITIONS: list[Data] = [
    *(
        {"conditions": [{"status": "True", **one}]}
        for one in (
            {"type": "Ready"},
            {"type": "Ready", "observedGeneration": 1},
            {"type": "Ready", "observedGeneration": 9},
            {"type": "Ready", "observedGeneration": -1},
            {"type": "Odd", "observedGeneration": -9},
            {"type": ""},
            {"type": "a_/b c"},
            {"type": "a.test/b"},
            {"type": "PodScheduled", "status": "x"},
            {"type": "Ready", "status": ""},
            {"type": "Ready", "reason": "not a reason", "message": "m", "lastProbeTime": None},
            {"type": "Ready", "lastTransitionTime": "2026-01-02T03:04:05Z"},
            {"type": "DisruptionTarget", "reason": "x"},
            {"type": "PodResizePending", "reason": "Infeasible"},
        )
    ),
    {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]},
    {"conditions": []},
    {"conditions": None},
    *({"observedGeneration": told} for told in (0, 1, 9, -1, None, 9223372036854775807)),
]
REST: list[Data] = [
    *({"nominatedNodeName": name} for name in ("n", "other", "", None, "Bad_", "a.b", "-")),
    *({"phase": phase} for phase in ("", "Running", "Odd", None, "Succeeded", "Pending")),
    *({"qosClass": told} for told in ("BestEffort", "Burstable", "Guaranteed", "", None, "odd")),
    *({"startTime": told} for told in ("2026-01-02T03:04:05Z", None)),
    *({"resize": told} for told in ("Proposed", "odd", None)),
    {"reason": "a b", "message": "m"},
    *(
        {"resourceClaimStatuses": told}
        for told in (
            None,
            [],
            [{"name": "d"}],
            [{"name": "d", "resourceClaimName": "x"}],
            [{"name": "d", "resourceClaimName": ""}],
            [{"name": "d", "resourceClaimName": "Bad_"}],
            [{"name": "d"}, {"name": "e", "resourceClaimName": None}],
            [{"name": "d"}, {"name": "d"}],
            [{"name": "none"}],
            [{"name": ""}],
        )
    ),
    *(
        {"extendedResourceClaimStatus": told}
        for told in (
            None,
            {},
            {"resourceClaimName": "x"},
            {"resourceClaimName": "x", "requestMappings": []},
            *(
                {"resourceClaimName": name, "requestMappings": mappings}
                for name in ("x", "", "Bad_")
                for mappings in (
                    [{"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}],
                    [{"containerName": "i", "resourceName": "example.com/nic", "requestName": "r"}] * 2,
                )
            ),
            *(
                {
                    "resourceClaimName": "x",
                    "requestMappings": [{"containerName": one, "resourceName": name, "requestName": of}],
                }
                for one, name, of in (
                    ("none", "example.com/gpu", "r"),
                    ("c", "cpu", "r"),
                    ("c", "example.com/nic", "r"),
                    ("c", "", ""),
                    ("", "example.com/gpu", "r"),
                    ("c", "example.com/gpu", "Bad_"),
                    ("c", "example.com/gpu", "a.b"),
                    ("e", "example.com/gpu", ""),
                )
            ),
        )
    ),
    *({"allocatedResources": told} for told in ({"cpu": "1"}, {"cpu": "-1"}, {"x y": "1"}, None)),
    *(
        {"resources": told}
        for told in ({}, amounts({"cpu": "-1"}), amounts({"cpu": "2"}, {"cpu": "1"}), None)
    ),
    *(
        {"nodeAllocatableResourceClaimStatuses": told}
        for told in ([{"resourceClaimName": "x", "containers": ["c"]}], [{"resourceClaimName": ""}], None)
    ),
    {"hostIPs": None, "podIPs": None, "conditions": None},
    {"unknown": 1},
]
OF_STATUSES: list[Data] = [
    {"allocatedResources": {"cpu": "1"}},
    {"allocatedResources": {"cpu": "-1", "x y": "1"}},
    {"resources": amounts({"cpu": "2"}, {"cpu": "1"})},
    {"resources": {"claims": [{"name": "none"}]}},
    {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "recursiveReadOnly": "odd"}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "volumeStatus": {"image": {"imageRef": "x"}}}]},
    {"stopSignal": "SIGTERM"},
    {"stopSignal": "odd"},
    {"started": True, "containerID": "odd"},
    *({"user": {"linux": told}} for told in (
        {"uid": 0, "gid": 0},
        {"uid": -1, "gid": 4294967296, "supplementalGroups": [1, -1, 1]},
        {},
    )),
    {"user": {}},
    *(
        {"allocatedResourcesStatus": told}
        for told in (
            [],
            [{"name": "example.com/gpu"}],
            [{"name": "example.com/nic"}],
            [{"name": "memory"}],
            [{"name": "claim:d/r"}],
            [{"name": "claim:d"}],
            [{"name": "claim:e"}],
            [{"name": "claim:e/r"}],
            [{"name": "claim:none"}],
            [{"name": "claim:"}],
            [{"name": ""}],
            [{"name": "cpu"}, {"name": "cpu"}],
            *(
                [{"name": "cpu", "resources": one}]
                for one in (
                    [{"resourceID": "a", "health": "Healthy"}],
                    [{"resourceID": "a", "health": "odd"}],
                    [{"resourceID": "a"}, {"resourceID": "a", "health": "Unknown"}],
                    [{"resourceID": "", "health": "Unhealthy", "message": "x"}],
                    [{"resourceID": "a", "health": "Unhealthy", "message": ""}],
                    [{"resourceID": "a", "health": "Unhealthy", "message": "x" * 1025}],
                )
            ),
        )
    ),
]  # fmt: skip


def statuses(made: Data, status: Data, *, everything: bool) -> Iterator[Ask]:
    place = f"{POD}/status"
    dry = f"{place}{DRY}"
    yield Ask("POST", PODS, made)
    if status:
        yield Ask("PATCH", place, {"status": status}, MERGE)
    names = [one["name"] for one in made["spec"]["containers"]]
    told: list[Data] = [*STATES, *REST, *(IPS + CONDITIONS if everything else [])]
    yield from (Ask("PATCH", dry, {"status": one}, MERGE, str(one)) for one in told)
    yield from (
        Ask("PATCH", dry, {"status": {key: [status_of(name, RUNS, **one)]}}, MERGE, f"{name} {one}")
        for one in (OF_STATUSES if everything else ())
        for key, name in (
            ("containerStatuses", names[0]),
            ("initContainerStatuses", "i"),
            ("ephemeralContainerStatuses", "e"),
        )
    )
    metas = METADATA if everything else ()
    yield from (Ask("PATCH", dry, {"metadata": one}, MERGE, str(one)) for one in metas)
    along: list[Data] = [
        {"spec": {"nodeName": "other", "containers": None}},
        {"status": None},
        {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}},
    ]
    yield from (Ask("PATCH", dry, one, MERGE, str(one)) for one in along)
    merged: list[Data] = [
        {"conditions": [{"type": "Ready", "status": "False"}, {"type": "a.test/b", "status": "True"}]},
        {"podIPs": [{"ip": "10.1.2.9"}], "podIP": "10.1.2.9"},
        {"podIPs": [{"$patch": "replace"}, {"ip": "10.1.2.9"}]},
        {"hostIPs": [{"ip": "10.1.2.9"}]},
        {"containerStatuses": [status_of("c", RUNS)]},
        {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": "f"}]},
    ]
    yield from (Ask("PATCH", dry, {"status": one}, STRATEGIC, str(one)) for one in merged)
    yield Ask("PUT", dry, made)
    yield Ask("PUT", dry, {**made, "status": {"phase": "Running"}})
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    owned: list[Data] = [{"phase": "Running"}, {"conditions": [{"type": "Ready", "status": "True"}]}]
    yield from (Ask("PATCH", f"{place}{BY_MANAGER}", {**applied, "status": one}, APPLIED) for one in owned)
    # What has ended may not go on, or may.
    for state in (ENDED, ENDED_WELL):
        for key, listed in LISTED:
            ended = [status_of(name, state) for name in listed]
            yield Ask("PATCH", place, {"status": {key: ended}}, MERGE)
            for i, name in enumerate(listed):
                for then in (RUNS, {}):
                    going = [status_of(name, then), *ended[:i], *ended[i + 1 :]]
                    yield Ask("PATCH", dry, {"status": {key: going}}, MERGE, f"{state} {then} {name}")
            for goes_on in ([status_of(listed[0], WAITS)], [status_of(one, RUNS) for one in listed], None):
                yield Ask("PATCH", dry, {"status": {key: goes_on}}, MERGE, key)
    yield Ask("GET", place)
    yield Ask("DELETE", place)


LISTED = (
    ("containerStatuses", "cwnora"),
    ("initContainerStatuses", "ist"),
    ("ephemeralContainerStatuses", "e"),
)


@pytest.mark.parametrize("name", HELD)
def test_statuses(name: str, kubernetes: Server, podling: Server) -> None:
    asks = [
        *statuses(*HELD[name], everything=name in ("plain", "with claims", "for windows", "with addresses"))
    ]
    _compare(name, asks, f"held-{name.lower().replace(' ', '-')}", kubernetes, podling)


# Which node it may be bound to.

TARGETS: list[Any] = [
    None,
    {},
    {"name": "n"},
    {"kind": "Node", "name": "n"},
    {"kind": "Node", "name": "Bad_"},
    {"kind": "Node", "name": "a/b"},
    {"kind": "Pod", "name": "n"},
    {"kind": "node", "name": "n"},
    {"kind": "Node", "name": "n", "apiVersion": "odd/v9", "namespace": "other", "uid": "x", "fieldPath": "y"},
    {"kind": "Node", "name": "n", "resourceVersion": "1"},
    {"kind": "", "name": ""},
    {"kind": "Other"},
]
BINDINGS: list[Data] = [
    {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
    {"metadata": {"labels": {"topology.kubernetes.io/zone": "z", "x": "changed"}}},
    {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
    {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}}},
    {"metadata": {"uid": "x"}},
    {"metadata": {"uid": "$0.metadata.uid"}},
    {"metadata": {"resourceVersion": "1"}},
    {"metadata": {"resourceVersion": "0"}},
    {"metadata": {"resourceVersion": "x"}},
    {"metadata": {"resourceVersion": "$0.metadata.resourceVersion"}},
    {"metadata": {"namespace": "other"}},
    {"metadata": {"finalizers": ["a.test/b"], "ownerReferences": [], "generateName": "x"}},
    {"kind": "Pod", "apiVersion": "v1"},
    {"kind": "Binding", "apiVersion": "v1"},
    {"spec": {}},
]
BOUND: dict[str, tuple[Data, Data]] = {
    "free": (pod(meta={"labels": {"x": "y"}}), {}),
    "gated": (pod(schedulingGates=GATES), {}),
    "on a node": (pod(nodeName="n"), {}),
    "that ended": (pod(), {"phase": "Failed"}),
    "with a nomination": (
        pod(),
        {
            "nominatedNodeName": "other",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"},
                {"type": "a.test/b", "status": "True", "observedGeneration": 1},
            ],
        },
    ),
    "scheduled already": (
        pod(),
        {
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
            ]
        },
    ),
}


def bindings(made: Data, status: Data) -> Iterator[Ask]:
    place = f"{POD}/binding"
    target = {"target": {"kind": "Node", "name": "n"}}
    yield Ask("POST", PODS, made)
    if status:
        yield Ask("PATCH", f"{POD}/status", {"status": status}, MERGE)
    for told in TARGETS:
        # To name no node is told apart elsewhere.
        if told and told.get("name") and told.get("kind") in (None, "Node"):
            yield Ask("POST", f"{place}{DRY}", {"metadata": {"name": "p"}, "target": told})
            yield Ask("POST", f"{BINDINGS_PATH}{DRY}", {"metadata": {"name": "p"}, "target": told})
    for told in BINDINGS:
        meta = {"name": "p", **told.get("metadata", {})}
        yield Ask("POST", f"{place}{DRY}", {**target, **told, "metadata": meta}, what=str(told))
        yield Ask("POST", f"{BINDINGS_PATH}{DRY}", {**target, **told, "metadata": meta}, what=str(told))
    yield Ask("POST", f"{place}{DRY}", target)
    yield Ask("POST", f"{PODS}/none/binding{DRY}", {"metadata": {"name": "none"}, **target})
    yield Ask("POST", f"{PODS}/none/binding{DRY}", {"metadata": {"name": "p"}, **target})
    yield Ask("POST", f"{BINDINGS_PATH}{DRY}", {"metadata": {"name": "none"}, **target})
    yield Ask("POST", f"{BINDINGS_PATH}{DRY}", target)
    yield Ask("GET", place)
    yield Ask("PUT", place, {"metadata": {"name": "p"}, **target})
    yield Ask(
        "POST", place, {"metadata": {"name": "p", "labels": {"x": "z"}, "annotations": {"g": "h"}}, **target}
    )
    yield Ask("GET", POD)
    yield Ask("POST", place, {"metadata": {"name": "p"}, **target})
    yield Ask("POST", place, {"metadata": {"name": "p"}, "target": {"name": "m"}})
    yield Ask("PATCH", f"{POD}/status{DRY}", {"status": {"nominatedNodeName": "m"}}, MERGE)
    yield Ask("PATCH", f"{POD}{DRY}", {"metadata": {"labels": {"m": "n"}}}, MERGE)
    yield Ask("PATCH", POD, {"metadata": {"finalizers": ["a.test/b"]}}, MERGE)
    yield Ask("DELETE", f"{POD}?gracePeriodSeconds=0")
    yield Ask("POST", f"{place}{DRY}", {"metadata": {"name": "p"}, "target": {"name": "m"}})
    yield Ask("PATCH", POD, {"metadata": {"finalizers": None}}, MERGE)
    yield Ask("POST", f"{place}{DRY}", {"metadata": {"name": "p"}, "target": {"name": "m"}})


BINDINGS_PATH = "/api/v1/namespaces/{ns}/bindings"


@pytest.mark.parametrize("name", BOUND)
def test_bindings(name: str, kubernetes: Server, podling: Server) -> None:
    asks = [*bindings(*BOUND[name])]
    _compare(name, asks, f"bound-{name.replace(' ', '-')}", kubernetes, podling)


# How it is deleted.

FINALIZED = {"finalizers": ["a.test/b"]}
GOING: dict[str, tuple[Data, Data]] = {
    "nowhere": (pod(), {}),
    "on a node": (pod(nodeName="n"), {}),
    "at once": (pod(nodeName="n", terminationGracePeriodSeconds=0), {}),
    "in a long time": (pod(nodeName="n", terminationGracePeriodSeconds=4000), {}),
    "that ended": (pod(nodeName="n"), {"phase": "Failed"}),
    "held": (pod(nodeName="n", meta=FINALIZED), {}),
    "held and ended": (pod(nodeName="n", meta=FINALIZED), {"phase": "Succeeded"}),
    "not scheduled": (pod(schedulingGates=GATES, meta=FINALIZED), {}),
    "of a file": (pod(meta=MIRRORED, nodeName="n"), {}),
    "that runs": (pod(nodeName="n"), running("c")),
}
OPTIONS: list[Data] = [
    {},
    *({"gracePeriodSeconds": told} for told in (0, 1, 5, 30, 5000, -1, -5, 9223372036854775807, None)),
    {"preconditions": {"uid": "x"}},
    {"preconditions": {"uid": "$0.metadata.uid"}},
    {"preconditions": {"resourceVersion": "1"}},
    {"preconditions": {"uid": "x", "resourceVersion": "1"}, "gracePeriodSeconds": 0},
    {"preconditions": {"uid": "", "resourceVersion": ""}},
    {"preconditions": {"uid": None}},
    {"preconditions": {}},
    *({"propagationPolicy": told} for told in ("Foreground", "Orphan", "Background", "odd", "")),
    {"orphanDependents": True},
    {"orphanDependents": False, "propagationPolicy": "Orphan"},
    {"orphanDependents": False, "gracePeriodSeconds": 3},
    {"dryRun": ["x"]},
    {"dryRun": ["All", "All"]},
    {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 2},
    {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 2},
    {"unknown": 1},
    {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
    {"ignoreStoreReadErrorWithClusterBreakingPotential": False},
]
CHANGED: list[tuple[str, Any, Mapping[str, str]]] = [
    ("", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    ("", {"metadata": {"finalizers": ["a.test/b", "c.test/d"]}}, MERGE),
    ("", {"metadata": {"finalizers": ["c.test/d"]}}, MERGE),
    ("", {"metadata": {"deletionTimestamp": None}}, MERGE),
    ("", {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}, MERGE),
    ("", {"metadata": {"deletionGracePeriodSeconds": None}}, MERGE),
    ("", {"metadata": {"deletionGracePeriodSeconds": 1}}, MERGE),
    ("", {"metadata": {"deletionGracePeriodSeconds": 0}}, MERGE),
    ("", {"spec": {"activeDeadlineSeconds": 3}}, MERGE),
    ("", {"spec": {"terminationGracePeriodSeconds": 3}}, MERGE),
    ("", {"spec": {"schedulingGates": None}}, MERGE),
    ("", of_containers({"name": "c", "image": "j"}), STRATEGIC),
    ("/resize", of_containers({"name": "c", "resizePolicy": policies(NO, NO)}), STRATEGIC),
    ("/ephemeralcontainers", of_entries(entry()), STRATEGIC),
    ("/status", {"status": {"phase": "Failed"}}, MERGE),
    ("/status", {"status": {"phase": "Running"}}, MERGE),
    ("/status", {"metadata": {"deletionTimestamp": None, "deletionGracePeriodSeconds": 0}}, MERGE),
]


def deletions(made: Data, status: Data) -> Iterator[Ask]:
    def changes() -> Iterator[Ask]:
        for part, change, kind in CHANGED:
            yield Ask("PATCH", f"{POD}{part}{DRY}", change, kind, str(change))
        yield Ask("PUT", f"{POD}{DRY}", made)
        yield Ask("POST", PODS, made)

    def dry(*options: Data) -> Iterator[Ask]:
        # What the body says counts, and not the query, if there is a body.
        yield from (Ask("DELETE", POD, {"dryRun": ["All"], **one}, what=str(one)) for one in options)

    yield Ask("POST", PODS, made)
    if status:
        yield Ask("PATCH", f"{POD}/status", {"status": status}, MERGE)
    yield from dry(*OPTIONS)
    yield from (Ask("DELETE", f"{POD}{DRY}&gracePeriodSeconds={told}") for told in (0, 1, -1, 7, "x", ""))
    yield Ask("DELETE", f"{POD}?gracePeriodSeconds=1", {"gracePeriodSeconds": 5, "dryRun": ["All"]})
    yield Ask("DELETE", f"{PODS}{DRY}&gracePeriodSeconds=2")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    for told in OPTIONS:
        # Of a pod that does not run Kubernetes tries again for ten seconds.
        is_slow = "preconditions" in told and status.get("phase") != "Running"
        if "dryRun" not in told and not is_slow:
            yield Ask("POST", f"{POD}/eviction{DRY}", {**eviction, "deleteOptions": told}, what=str(told))
    yield Ask("GET", POD)
    # One after the other, each of which may only hasten it.
    yield from changes()
    for told in ({"gracePeriodSeconds": 40}, {}, {"gracePeriodSeconds": 60}, {"gracePeriodSeconds": 20}):
        yield Ask("DELETE", POD, {**told}, what=str(told))
        yield Ask("GET", POD)
    yield from dry(*OPTIONS[::2])
    yield from changes()
    for grace in (20, 21, -1, 1, 3, -7, 0):
        yield Ask("DELETE", f"{POD}?gracePeriodSeconds={grace}")
        yield Ask("GET", POD)
        yield from dry({}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": 5})
    yield from changes()
    yield Ask("PATCH", POD, {"metadata": {"finalizers": ["a.test/b"]}}, MERGE)
    yield Ask("DELETE", POD, {"gracePeriodSeconds": 0})
    yield Ask("PATCH", POD, {"metadata": {"finalizers": None}}, MERGE)
    yield Ask("GET", POD)


@pytest.mark.parametrize("name", GOING)
def test_deletions(name: str, kubernetes: Server, podling: Server) -> None:
    asks = [*deletions(*GOING[name])]
    _compare(name, asks, f"going-{name.replace(' ', '-')}", kubernetes, podling)


# Who evicts it says so in its conditions.

TARGETED = {"type": "DisruptionTarget", "reason": "x", "lastTransitionTime": "2026-01-02T03:04:05Z"}
OTHER = {"type": "Ready", "status": "True", "observedGeneration": 1}
EVICTED: dict[str, tuple[Data, Data]] = {
    "at first": (pod(nodeName="n", meta=FINALIZED), {}),
    "nowhere": (pod(meta=FINALIZED), {"conditions": [OTHER]}),
    "that runs": (pod(nodeName="n", meta=FINALIZED), {**running("c"), "observedGeneration": 1}),
    "targeted": (
        pod(nodeName="n", meta=FINALIZED),
        {"conditions": [{**TARGETED, "status": "True", "observedGeneration": 1}, OTHER]},
    ),
    "targeted no more": (
        pod(nodeName="n", meta=FINALIZED),
        {**running("c"), "conditions": [{**TARGETED, "status": "False"}, OTHER]},
    ),
    "that ended": (pod(nodeName="n", meta=FINALIZED), {"phase": "Failed", "conditions": [OTHER]}),
}


@pytest.mark.parametrize("name", EVICTED)
def test_evictions(name: str, kubernetes: Server, podling: Server) -> None:
    made, status = EVICTED[name]
    eviction = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 9}}
    asks = [
        Ask("POST", PODS, made),
        Ask("PATCH", f"{POD}/status", {"status": status}, MERGE),
        *(
            Ask(method, f"{POD}{part}", body, MERGE if method == "PATCH" else {})
            for method, part, body in (
                ("POST", f"/eviction{DRY}", eviction),
                ("GET", "", None),
                ("PATCH", "", {"spec": {"activeDeadlineSeconds": 5}}),
                ("POST", "/eviction", eviction),
                ("GET", "", None),
                ("POST", "/eviction", {"metadata": {"name": "p"}}),
                ("GET", "", None),
                ("PATCH", "", {"metadata": {"finalizers": None}}),
            )
        ),
    ]
    _compare(name, asks, f"evicted-{name.replace(' ', '-')}", kubernetes, podling)
