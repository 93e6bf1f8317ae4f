"""R-SYS-8: the kinds that make pods from a template are defaulted, validated and changed as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

APPS = "/apis/apps/v1/namespaces/{ns}"
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR = {"matchLabels": {"app": "a"}}
DISK = [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]
IN_TEMPLATE: list[tuple[str, Any]] = [
    ("spec.template.spec.terminationGracePeriodSeconds", -5),
    ("spec.template.metadata.labels", {"app": "b"}),
    ("spec.template.metadata.labels", GONE),
    ("spec.template.spec.restartPolicy", "Never"),
    ("spec.template.spec.activeDeadlineSeconds", 5),
    ("spec.template.spec.hostname", "No_Name"),
    ("spec.template.spec.subdomain", "No_Name"),
    ("spec.template.spec.containers", []),
    ("spec.template.spec.ephemeralContainers", [{"name": "e", "image": "i"}]),
    ("spec.template.spec.volumes", DISK),
    ("spec.template.spec.nodeSelector", {"beta.kubernetes.io/os": "linux"}),
    ("spec.template", GONE),
    ("spec.minReadySeconds", -1),
    ("spec.minReadySeconds", 5),
    ("metadata.name", "No_Name"),
    ("metadata.labels", {"a": "-"}),
    ("metadata.generation", 7),
    ("status", {"observedGeneration": 4}),
    ("spec.unknown", 1),
]
IN_SELECTOR: list[tuple[str, Any]] = [
    ("spec.selector", GONE),
    ("spec.selector", {}),
    ("spec.selector", {"matchLabels": {"app": "b"}}),
    ("spec.selector", {"matchLabels": {"-": "b"}}),
    ("spec.selector", {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}),
    ("spec.selector", {"matchExpressions": [{"key": "app", "operator": "Near"}]}),
    ("spec.selector", {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]}),
]
COUNTED: list[tuple[str, Any]] = [
    ("spec.replicas", 0),
    ("spec.replicas", 3),
    ("spec.replicas", -1),
    ("spec.replicas", "3"),
]
LIMIT: list[tuple[str, Any]] = [("spec.revisionHistoryLimit", 0), ("spec.revisionHistoryLimit", -1)]
CLAIM: dict[str, Any] = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
MOUNT = {"name": "data", "mountPath": "/data"}
MOUNTS = {
    "selector": SELECTOR,
    "serviceName": "s",
    "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i", "volumeMounts": [MOUNT]}], "volumes": DISK},
    },
}


def rolling(path: str, *amounts: str) -> list[tuple[str, Any]]:
    values: list[Any] = [0, 1, -1, "0%", "50%", "101%", "1", "x%", "-1%", "050%"]
    return [(f"{path}.{amount}", value) for amount in amounts for value in values] + [
        (path, {amounts[0]: 0, amounts[-1]: 0}),
        (path, {amounts[0]: "0%", amounts[-1]: "0%"}),
        (path, {amounts[0]: 1, amounts[-1]: 1}),
        (path, {amounts[0]: 0, amounts[-1]: 1}),
        (path, {}),
    ]


def workload(kind: str, name: str, version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    body = {"selector": SELECTOR, "template": TEMPLATE, **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": body}


KINDS: dict[str, tuple[str, dict[str, Any], list[tuple[str, Any]]]] = {
    "deployments": (
        f"{APPS}/deployments",
        workload("Deployment", "d"),
        [
            *COUNTED,
            *LIMIT,
            *IN_SELECTOR,
            ("spec.strategy", {"type": "Recreate"}),
            ("spec.strategy", {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
            ("spec.strategy", {"type": "Slow"}),
            ("spec.strategy", {"rollingUpdate": {"maxSurge": 1}}),
            ("spec.progressDeadlineSeconds", 0),
            ("spec.progressDeadlineSeconds", -1),
            ("spec.progressDeadlineSeconds", 1),
            ("spec.paused", True),
            *rolling("spec.strategy.rollingUpdate", "maxUnavailable", "maxSurge"),
        ],
    ),
    "replicasets": (f"{APPS}/replicasets", workload("ReplicaSet", "r"), [*COUNTED, *IN_SELECTOR]),
    "daemonsets": (
        f"{APPS}/daemonsets",
        workload("DaemonSet", "s"),
        [
            *LIMIT,
            *IN_SELECTOR,
            ("spec.updateStrategy", {"type": "OnDelete"}),
            ("spec.updateStrategy", {"type": "OnDelete", "rollingUpdate": {"maxSurge": 1}}),
            ("spec.updateStrategy", {"type": "Slow"}),
            *rolling("spec.updateStrategy.rollingUpdate", "maxUnavailable", "maxSurge"),
        ],
    ),
    "statefulsets": (
        f"{APPS}/statefulsets",
        workload("StatefulSet", "t", serviceName="s"),
        [
            *COUNTED,
            *LIMIT,
            *IN_SELECTOR,
            ("spec.serviceName", GONE),
            ("spec.serviceName", "No_Name"),
            ("spec.podManagementPolicy", "Parallel"),
            ("spec.podManagementPolicy", "Odd"),
            ("spec.updateStrategy", {"type": "OnDelete"}),
            ("spec.updateStrategy", {"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
            ("spec.updateStrategy", {"type": "OnDelete", "rollingUpdate": {"partition": 0}}),
            ("spec.updateStrategy", {"type": "Slow"}),
            ("spec.updateStrategy", {"rollingUpdate": {"partition": -1}}),
            ("spec.persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Delete"}),
            ("spec.persistentVolumeClaimRetentionPolicy", {"whenScaled": "Odd"}),
            ("spec.ordinals", {"start": 3}),
            ("spec.ordinals", {"start": -3}),
            *rolling("spec.updateStrategy.rollingUpdate", "maxUnavailable"),
            (
                "spec.volumeClaimTemplates",
                [CLAIM],
            ),
            ("spec.volumeClaimTemplates", [{"metadata": {"name": "data"}, "spec": {}}]),
            *(
                ("spec", {**MOUNTS, "volumeClaimTemplates": claims})
                for claims in (
                    [],
                    [CLAIM],
                    [CLAIM, CLAIM],
                    # Alone: Kubernetes takes the volumes of several from a map.
                    [{**CLAIM, "metadata": {"name": "a.b"}}],
                )
            ),
        ],
    ),
    "replicationcontrollers": (
        "/api/v1/namespaces/{ns}/replicationcontrollers",
        workload("ReplicationController", "c", "v1", selector={"app": "a"}),
        [
            *COUNTED,
            ("spec.selector", GONE),
            ("spec.selector", {}),
            ("spec.selector", {"app": "b"}),
            ("metadata.labels", {"x": "y"}),
        ],
    ),
}
REVISION = {
    "apiVersion": "apps/v1",
    "kind": "ControllerRevision",
    "metadata": {"name": "v"},
    "data": {"a": [1, {"b": "c"}]},
    "revision": 1,
}
UPDATES: list[tuple[str, Any]] = [
    ("metadata.labels", {"x": "y"}),
    ("spec.replicas", 4),
    ("spec.template.metadata.labels", {"app": "a", "new": "er"}),
    ("spec.template.spec.restartPolicy", "Never"),
    ("spec.serviceName", "other"),
    ("spec.podManagementPolicy", "Parallel"),
    ("spec.revisionHistoryLimit", 3),
    ("spec.minReadySeconds", 1),
    ("status", {"replicas": 5}),
    ("spec", GONE),
]
OTHER_SELECTOR: list[tuple[str, Any]] = [("spec.selector", {"matchLabels": {"app": "b"}})]
OWN_UPDATES = {name: OTHER_SELECTOR for name in KINDS if name != "replicationcontrollers"}
STATUS: list[tuple[str, Any]] = [
    ("status.replicas", 2),
    ("status.replicas", -2),
    ("status.readyReplicas", 1),
    ("status.readyReplicas", 3),
    ("status.availableReplicas", 2),
    ("status.updatedReplicas", 3),
    ("status.fullyLabeledReplicas", 3),
    ("status.currentReplicas", 3),
    ("status.numberReady", -3),
    ("status.numberUnavailable", 3),
    ("status.collisionCount", 2),
    ("status.collisionCount", 1),
    ("status.collisionCount", -1),
    ("status.observedGeneration", -1),
    ("status.conditions", [{"type": "Available", "status": "True"}]),
    ("spec.replicas", 9),
    ("metadata.labels", {"from": "status"}),
    ("metadata.annotations", {"deprecated.daemonset.template.generation": "7"}),
]
REVISIONS: list[tuple[str, Any]] = [
    ("data", GONE),
    ("data", {}),
    ("data", "text"),
    ("data", None),
    ("revision", -1),
    ("revision", 0),
    ("metadata.name", "No_Name"),
]


def sequences() -> list[Compared]:
    found = []
    for name, (target, base, changes) in KINDS.items():
        place = f"{target}/{base['metadata']['name']}"
        found += [
            Compared(f"{name}: created", created(target, base, [*changes, *IN_TEMPLATE])),
            Compared(f"{name}: updated", updated(target, base, UPDATES + OWN_UPDATES.get(name, []))),
            Compared(
                f"{name}: status",
                [
                    one if one.method != "PATCH" else one_of_status(one)
                    for one in updated(target, base, STATUS)
                ],
            ),
            Compared(
                f"{name}: shown",
                [
                    Ask("POST", target, base),
                    Ask("GET", place, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}),
                    Ask("GET", target, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}),
                    Ask("GET", f"{target}?fieldSelector=status.replicas%3D0"),
                    Ask("GET", f"{target}?labelSelector=x"),
                    Ask("DELETE", place, {"propagationPolicy": "Orphan"}),
                    Ask("GET", place),
                ],
            ),
        ]
        if name != "daemonsets":
            found.append(Compared(f"{name}: scaled", scaled(target, base)))
    revisions = f"{APPS}/controllerrevisions"
    return [
        *found,
        Compared("controllerrevisions: created", created(revisions, REVISION, REVISIONS)),
        Compared("controllerrevisions: updated", [
            Ask("POST", revisions, REVISION),
            *(Ask("PUT", f"{revisions}/v", changed(REVISION, path, value)) for path, value in [
                ("revision", 2), ("data", {"a": 1}), ("metadata.labels", {"x": "y"}), ("revision", -1),
            ]),
            Ask("GET", f"{revisions}/v"),
        ]),
    ]  # fmt: skip


def scaled(target: str, base: dict[str, Any]) -> list[Ask]:
    name = base["metadata"]["name"]
    place = f"{target}/{name}"

    def put(replicas: Any, **meta: Any) -> Ask:
        body = {"metadata": {"name": name, **meta}, "spec": {"replicas": replicas}}
        return Ask("PUT", f"{place}/scale", body)

    merge, strategic = {"Content_Type": MERGE_PATCH}, {"Content_Type": STRATEGIC_PATCH}
    return [
        Ask("GET", f"{place}/scale"),
        Ask("POST", target, base),
        Ask("GET", f"{place}/scale"),
        put(3),
        put(3),
        put(-1),
        put("x"),
        put(4, resourceVersion="1"),
        put(4, resourceVersion="$3.metadata.resourceVersion"),
        put(5, uid="11111111-1111-1111-1111-111111111111"),
        put(5, name="other"),
        put(5, labels={"a": "b"}),
        Ask("PATCH", f"{place}/scale", {"spec": {"replicas": 2}}, merge),
        Ask("PATCH", f"{place}/scale", {"spec": {"replicas": 1}}, strategic),
        Ask("PATCH", f"{place}/scale", {"spec": {"replicas": -1}}, merge),
        Ask("PATCH", f"{place}/scale", {"status": {"replicas": 9}}, merge),
        Ask("PATCH", f"{place}/scale?dryRun=All", {"spec": {"replicas": 8}}, merge),
        Ask("POST", f"{place}/scale", {}),
        Ask("POST", f"{place}/status", {}),
        Ask("DELETE", f"{place}/scale"),
        Ask("GET", place),
    ]


def one_of_status(ask: Ask) -> Ask:
    return Ask(ask.method, f"{ask.target}/status", ask.body, ask.headers)


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_workloads(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
