"""R-SYS-8: what `kubectl get` shows of core kinds in their states, as Kubernetes tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

NS = "/api/v1/namespaces/{ns}"
PODS = f"{NS}/pods"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
MERGE = {"Content_Type": MERGE_PATCH}
Body = dict[str, Any]
THEN, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:04:05Z"

RUNS: Body = {"running": {"startedAt": THEN}}
WAITS: Body = {"waiting": {"reason": "ContainerCreating"}}


def waits(reason: str) -> Body:
    return {"waiting": {"reason": reason}}


def ended(code: int = 0, reason: str = "", **more: Any) -> Body:
    return {
        "terminated": {"exitCode": code, "reason": reason, "startedAt": THEN, "finishedAt": LATER, **more}
    }


def status(name: str, state: Body, *, ready: bool = False, restarts: int = 0, **more: Any) -> Body:
    told = {"name": name, "state": state, "ready": ready, "restartCount": restarts}
    return {**told, "image": "i", "imageID": "", **more}


def condition(kind: str, value: str, **more: Any) -> Body:
    return {"type": kind, "status": value, "lastTransitionTime": THEN, **more}


READY, NOT_READY = condition("Ready", "True"), condition("Ready", "False")
INITIALIZED = condition("Initialized", "True")
SIDECAR = {"restartPolicy": "Always"}
TOKENLESS = {"automountServiceAccountToken": False}
ONE: Body = {"containers": [{"name": "a", "image": "i"}]}
TWO: Body = {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]}
FIRST: Body = {**ONE, "initContainers": [{"name": "i", "image": "i"}, {"name": "j", "image": "i"}]}
WITH_SIDECAR: Body = {
    **ONE,
    "initContainers": [{"name": "i", "image": "i", **SIDECAR}, {"name": "j", "image": "i"}],
}
GATED: Body = {**ONE, "schedulingGates": [{"name": "a.test/b"}]}
ASSIGNED: Body = {**ONE, "nodeName": "nowhere"}
GATES: Body = {**ONE, "readinessGates": [{"conditionType": "a.test/one"}, {"conditionType": "a.test/two"}]}


def told(*statuses: Body, first: tuple[Body, ...] = (), **more: Any) -> Body:
    return {"containerStatuses": list(statuses), "initContainerStatuses": list(first), **more}


def of_pods() -> Iterator[tuple[Body, Body]]:
    """The spec of a pod, and its status."""
    yield ONE, {}
    yield TWO, {}
    yield GATED, {}
    yield ASSIGNED, {}
    yield ONE, {"phase": "Unknown"}
    yield ONE, {"phase": "Failed", "reason": "Evicted", "message": "m"}
    yield ASSIGNED, {"phase": "Failed", "reason": "NodeLost"}
    yield ONE, {"phase": "Running", "reason": "NodeLost"}
    yield (
        ONE,
        {"phase": "Pending", "conditions": [condition("PodScheduled", "False", reason="Unschedulable")]},
    )
    yield (
        ONE,
        {"phase": "Pending", "conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]},
    )
    for state in (
        RUNS,
        WAITS,
        waits("CrashLoopBackOff"),
        waits("ErrImagePull"),
        waits(""),
        ended(0, "Completed"),
        ended(1, "Error"),
        ended(137, "OOMKilled"),
        ended(3),
        ended(0),
        ended(0, signal=9),
        ended(5, signal=9),
        ended(5, "Odd", signal=9),
        {},
    ):
        for phase in ("Running", "Pending", "Succeeded", "Failed"):
            yield ONE, told(status("a", state), phase=phase)
    last: Any = {"lastState": ended(1, "Error")}
    for ready in (True, False):
        yield ONE, told(status("a", RUNS, ready=ready, restarts=3), phase="Running")
        yield (
            ONE,
            told(status("a", RUNS, ready=ready, restarts=3, **last), phase="Running", conditions=[READY]),
        )
        yield (
            TWO,
            told(
                status("a", RUNS, ready=ready, restarts=3, **last),
                status("b", ended(0, "Completed"), restarts=1),
                phase="Running",
                conditions=[READY if ready else NOT_READY],
            ),
        )
    yield TWO, told(status("a", ended(2, "Error")), status("b", RUNS, ready=True), phase="Running")
    yield TWO, told(status("a", RUNS, ready=True), status("b", ended(2, "Error")), phase="Running")
    yield (
        TWO,
        told(status("a", RUNS), status("b", waits("CrashLoopBackOff"), restarts=7, **last), phase="Running"),
    )
    done = status("i", ended(0, "Completed"))
    for state in (
        RUNS,
        WAITS,
        waits("PodInitializing"),
        waits("CrashLoopBackOff"),
        waits(""),
        ended(1, "Error"),
        ended(1),
        ended(1, signal=2),
        {},
    ):
        for first in ((status("i", state, restarts=2, **last),), (done, status("j", state, restarts=1))):
            yield FIRST, told(status("a", waits("PodInitializing")), first=first, phase="Pending")
    yield FIRST, told(first=(done, status("j", ended(0))), phase="Pending")
    yield (
        FIRST,
        told(
            status("a", RUNS, ready=True),
            first=(done, status("j", ended(0, "Completed"), restarts=4)),
            phase="Running",
            conditions=[INITIALIZED, READY],
        ),
    )
    for started in (True, False, None):
        side = status("i", RUNS, ready=bool(started), restarts=1, started=started)
        for second in (
            (),
            (status("j", RUNS),),
            (status("j", ended(0, "Completed")),),
            (status("j", ended(1)),),
        ):
            yield WITH_SIDECAR, told(status("a", WAITS), first=(side, *second), phase="Pending")
            yield (
                WITH_SIDECAR,
                told(
                    status("a", RUNS, ready=True),
                    first=(side, *second),
                    phase="Running",
                    conditions=[INITIALIZED],
                ),
            )
            yield (
                WITH_SIDECAR,
                told(
                    status("a", ended(0, "Completed")),
                    first=(side, *second),
                    phase="Succeeded",
                    conditions=[INITIALIZED],
                ),
            )
    yield (
        GATES,
        told(status("a", RUNS, ready=True), phase="Running", conditions=[condition("a.test/one", "True")]),
    )
    both = [condition("a.test/one", "True"), condition("a.test/two", "True"), READY]
    yield GATES, told(status("a", RUNS, ready=True), phase="Running", conditions=both)
    yield (
        {**ASSIGNED, "priority": None},
        told(
            status("a", RUNS, ready=True),
            phase="Running",
            podIP="1.2.3.4",
            podIPs=[{"ip": "1.2.3.4"}, {"ip": "fd00::1"}],
            hostIP="4.3.2.1",
            hostIPs=[{"ip": "4.3.2.1"}],
        ),
    )
    yield ONE, {"phase": "Pending", "nominatedNodeName": "other"}


def pods() -> list[Ask]:
    asks: list[Ask] = []
    for number, (spec, state) in enumerate(of_pods()):
        name = f"p-{number:03}"
        asks.append(Ask("POST", PODS, {"metadata": {"name": name}, "spec": {**TOKENLESS, **spec}}))
        if state:
            asks.append(Ask("PATCH", f"{PODS}/{name}/status", {"status": state}, MERGE, str(state)))
        asks.append(Ask("GET", f"{PODS}/{name}", headers=TABLE, what=str(state)))
    going = {"metadata": {"name": "going", "finalizers": ["a.test/b"]}, "spec": {**TOKENLESS, **ASSIGNED}}
    asks += [
        Ask("POST", PODS, going),
        Ask("DELETE", f"{PODS}/going?gracePeriodSeconds=600"),
        Ask("GET", f"{PODS}/going", headers=TABLE),
        *(
            ask
            for state in (
                told(status("a", RUNS, ready=True), phase="Running"),
                told(status("a", ended(0, "Completed")), phase="Succeeded"),
                told(status("a", ended(1, "Error")), phase="Failed"),
                {"phase": "Running", "reason": "NodeLost"},
            )
            for ask in (
                Ask("PATCH", f"{PODS}/going/status", {"status": state}, MERGE),
                Ask("GET", f"{PODS}/going", headers=TABLE, what=str(state)),
            )
        ),
        Ask("PATCH", f"{PODS}/going", {"metadata": {"finalizers": None}}, MERGE),
        Ask("GET", PODS, headers=TABLE),
        Ask("GET", f"{PODS}?includeObject=Object&limit=3", headers=TABLE),
    ]
    return asks


INFO = {
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "kernelVersion": "6.1",
    "osImage": "O",
    "containerRuntimeVersion": "containerd://1",
    "kubeletVersion": "v1.36.2",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}
OTHERS: dict[str, tuple[str, list[tuple[Body, Body]]]] = {
    "nodes": (
        "/api/v1/nodes",
        [
            ({}, {}),
            ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, {}),
            (
                {
                    "metadata": {
                        "labels": {
                            "node-role.kubernetes.io/b": "x",
                            "kubernetes.io/role": "worker",
                            "node-role.kubernetes.io/": "",
                        }
                    }
                },
                {"conditions": [condition("Ready", "True")]},
            ),
            ({"spec": {"unschedulable": True}}, {"conditions": [condition("Ready", "False")]}),
            ({"spec": {"unschedulable": True}}, {"conditions": [condition("Ready", "Unknown")]}),
            (
                {"metadata": {"labels": {"kubernetes.io/role": ""}}},
                {
                    "conditions": [condition("MemoryPressure", "True"), condition("Ready", "True")],
                    "addresses": [
                        {"type": "Hostname", "address": "h"},
                        {"type": "InternalIP", "address": "1.2.3.4"},
                        {"type": "ExternalIP", "address": "4.3.2.1"},
                        {"type": "InternalIP", "address": "fd00::1"},
                    ],
                    "nodeInfo": INFO,
                },
            ),
            *(({}, {"nodeInfo": {**INFO, name: ""}}) for name in INFO),
            ({}, {"nodeInfo": {**INFO, "kernelVersion": "", "architecture": ""}}),
        ],
    ),
    "namespaces": ("/api/v1/namespaces", [({}, {}), ({}, {"phase": "Terminating"})]),
    "services": (
        f"{NS}/services",
        [
            ({"spec": {"ports": [{"port": 1}]}}, {}),
            ({"spec": {"clusterIP": "None"}}, {}),
            ({"spec": {"clusterIP": "None", "ports": [{"port": 1, "protocol": "UDP"}]}}, {}),
            ({"spec": {"type": "ExternalName", "externalName": "a.test"}}, {}),
            ({"spec": {"type": "ExternalName", "externalName": "a.test", "externalIPs": ["1.2.3.4"]}}, {}),
            (
                {
                    "spec": {
                        "selector": {"a": "b", "c": "d"},
                        "externalIPs": ["1.2.3.4"],
                        "ports": [{"port": 1}],
                    }
                },
                {},
            ),
            (
                {
                    "spec": {
                        "type": "LoadBalancer",
                        "allocateLoadBalancerNodePorts": False,
                        "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b", "protocol": "SCTP"}],
                    }
                },
                {},
            ),
            *(
                (
                    {
                        "spec": {
                            "type": "LoadBalancer",
                            "allocateLoadBalancerNodePorts": False,
                            "ports": [{"port": 1}],
                            **own,
                        }
                    },
                    {"loadBalancer": {"ingress": ingress}},
                )
                for own in ({}, {"externalIPs": ["1.2.3.4"]})
                for ingress in (
                    [{"ip": "9.9.9.9"}],
                    [{"hostname": "a.test"}],
                    [{"ip": "9.9.9.9", "hostname": "a.test"}, {"hostname": "a-much-longer-name.of.a.test"}],
                )
            ),
        ],
    ),
    "endpoints": (
        f"{NS}/endpoints",
        [
            ({}, {}),
            ({"subsets": [{"addresses": [{"ip": "1.2.3.4"}]}]}, {}),
            ({"subsets": [{"notReadyAddresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 1}]}]}, {}),
            (
                {
                    "subsets": [
                        {
                            "addresses": [{"ip": f"1.2.3.{n}"} for n in range(5)],
                            "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}],
                        },
                        {"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 3}]},
                    ]
                },
                {},
            ),
        ],
    ),
    "replicationcontrollers": (
        f"{NS}/replicationcontrollers",
        [
            (
                {
                    "spec": {
                        "replicas": replicas,
                        "selector": {"a": "b", "c": "d"},
                        "template": {
                            "metadata": {"labels": {"a": "b", "c": "d"}},
                            "spec": {
                                "initContainers": [{"name": "i", "image": "x"}],
                                "containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j"}],
                            },
                        },
                    }
                },
                {"replicas": 3, "readyReplicas": 2},
            )
            for replicas in (None, 0, 7)
        ],
    ),
    "secrets": (
        f"{NS}/secrets",
        [({}, {}), ({"type": "a.test/b", "data": {"a": "YQ==", "b": "YQ=="}}, {}), ({"immutable": True}, {})],
    ),
    "configmaps": (
        f"{NS}/configmaps",
        [({}, {}), ({"data": {"a": "b"}, "binaryData": {"c": "YQ=="}}, {})],
    ),
    "serviceaccounts": (
        f"{NS}/serviceaccounts",
        [({}, {}), ({"secrets": [{"name": "a"}, {"name": "b"}], "imagePullSecrets": [{"name": "c"}]}, {})],
    ),
    "limitranges": (
        f"{NS}/limitranges",
        [({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}, {})],
    ),
    "resourcequotas": (
        f"{NS}/resourcequotas",
        [
            ({}, {}),
            ({"spec": {"hard": {"pods": "9"}}}, {}),
            (
                {
                    "spec": {
                        "hard": {
                            "pods": "9",
                            "limits.cpu": "2",
                            "requests.memory": "1Gi",
                            "limits.memory": "2Gi",
                        }
                    }
                },
                {
                    "hard": {
                        "pods": "9",
                        "limits.cpu": "2",
                        "requests.memory": "1Gi",
                        "limits.memory": "2Gi",
                    },
                    "used": {"pods": "1", "limits.cpu": "1500m", "requests.memory": "0"},
                },
            ),
        ],
    ),
    "podtemplates": (
        f"{NS}/podtemplates",
        [({"template": {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": TWO}}, {})],
    ),
    "events": (
        f"{NS}/events",
        [
            (
                {
                    "involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
                    "reason": "R",
                    "message": " a message\n of lines ",
                    "type": "Warning",
                    **more,
                },
                {},
            )
            for more in (
                {},
                {"firstTimestamp": THEN, "lastTimestamp": LATER, "count": 7},
                {"source": {"component": "c"}},
                {"source": {"component": "c", "host": "h"}, "reportingComponent": "r"},
                {"reportingComponent": "r", "reportingInstance": "i"},
                {
                    "eventTime": "2026-01-02T03:04:05.000006Z",
                    "reportingComponent": "a.test/r",
                    "reportingInstance": "i",
                    "action": "x",
                    "series": {"count": 3, "lastObservedTime": "2026-01-02T04:04:05.000006Z"},
                },
                {"involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p", "fieldPath": "spec.x"}},
                {"firstTimestamp": THEN},
            )
        ],
    ),
}


def others(name: str) -> list[Ask]:
    target, rows = OTHERS[name]
    asks: list[Ask] = []
    for number, (fields, state) in enumerate(rows):
        meta = {**fields.get("metadata", {}), "name": f"{name}-{number}"}
        meta["labels"] = {**meta.get("labels", {}), "of": "tables"}
        place = f"{target}/{meta['name']}"
        asks.append(Ask("POST", target, {**fields, "metadata": meta}))
        if state:
            asks.append(Ask("PATCH", f"{place}/status", {"status": state}, MERGE))
        asks.append(Ask("GET", place, headers=TABLE, what=str((fields, state))))
    return [
        *asks,
        Ask("GET", f"{target}?labelSelector=of%3Dtables", headers=TABLE),
        *(Ask("DELETE", f"{target}/{name}-{number}") for number in range(len(rows))),
    ]


SEQUENCES = [
    Compared("pods", pods(), apart=True),
    *(Compared(name, others(name), apart=True) for name in OTHERS),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_tables(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"tables-{sequence.name}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
