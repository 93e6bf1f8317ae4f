"""R-SYS-8: what a ResourceQuota refuses, counts and says of itself is what Kubernetes' does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

BASE = "/api/v1/namespaces/{ns}"
QUOTAS, PODS, MAPS, SERVICES = (
    f"{BASE}/{plural}" for plural in ("resourcequotas", "pods", "configmaps", "services")
)
HARD = {"pods": "1", "configmaps": "2", "requests.cpu": "500m", "count/services": "1"}
USED = {"pods": "0", "configmaps": "0", "requests.cpu": "0", "count/services": "0"}


def _quota(name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def _pod(name: str, cpu: str = "") -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": False, "containers": [container]},
    }


def _map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def _scoped(operator: str, values: list[str]) -> dict[str, Any]:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    return {"matchExpressions": [expression]}


COUNTED = (
    Ask("POST", QUOTAS, _quota(hard=HARD)),
    Ask(
        "PATCH", f"{QUOTAS}/q/status", {"status": {"hard": HARD, "used": USED}}, {"Content_Type": MERGE_PATCH}
    ),
    Ask("POST", PODS, _pod("a")),
    Ask("POST", PODS, _pod("a", "600m")),
    Ask("POST", f"{PODS}?dryRun=All", _pod("a", "300m")),
    Ask("GET", f"{QUOTAS}/q"),
    Ask("POST", PODS, _pod("a", "300m")),
    Ask("POST", PODS, _pod("b", "300m")),
    Ask("GET", f"{QUOTAS}/q"),
    *(Ask("POST", MAPS, _map(name)) for name in "abc"),
    Ask("POST", f"{MAPS}?dryRun=All", _map("c")),
    Ask("DELETE", f"{MAPS}/a"),
    Ask("GET", f"{QUOTAS}/q"),
    *(Ask("POST", SERVICES, {**_map(name), "spec": {"ports": [{"port": 1}]}}) for name in "st"),
    Ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0"),
    Ask("GET", QUOTAS),
)
REFUSED = (
    _quota(hard={"pods": "-1"}), _quota(hard={"pods": "1.5"}), _quota(hard={"x y": "1"}),
    _quota(hard={"x": "1"}),
    _quota(hard={"pods": "1", "services": "1"}, scopes=["BestEffort"]),
    _quota(hard={"pods": "1"}, scopes=["BestEffort", "NotBestEffort"]),
    _quota(hard={"pods": "1"}, scopes=["X"]),
    _quota(hard={"pods": "1"}, scopeSelector=_scoped("In", [])),
    _quota(hard={"pods": "1"}, scopeSelector=_scoped("Exists", ["a"])),
    _quota(hard={"pods": "1"}, scopeSelector=_scoped("Among", ["a"])),
)  # fmt: skip
SEQUENCES = (
    Compared("what is counted", COUNTED),
    Compared("what is refused", [Ask("POST", f"{QUOTAS}?dryRun=All", wrong) for wrong in REFUSED]),
)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_a_quota_is_that_of_kubernetes(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"quota-{SEQUENCES.index(sequence)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


ATTRIBUTES = {"scopeName": "VolumeAttributesClass"}

ROWS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "pods": ({"hard": {"pods": "1", "count/pods": "2"}}, {"pods": "1", "count/pods": "1"}),
    "requests": (
        {"hard": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}},
        {"cpu": "300m", "memory": "0", "ephemeral-storage": "0"},
    ),
    "requests by their names": (
        {"hard": {"requests.cpu": "1", "requests.memory": "1Gi", "requests.ephemeral-storage": "1Gi"}},
        {"requests.cpu": "900m", "requests.memory": "1Gi", "requests.ephemeral-storage": "1"},
    ),
    "limits": (
        {"hard": {"limits.cpu": "1", "limits.memory": "1Gi", "limits.ephemeral-storage": "1Gi"}},
        {"limits.cpu": "0", "limits.memory": "1", "limits.ephemeral-storage": "0"},
    ),
    "of a maker": (
        {"hard": {"requests.example.com/gpu": "1", "requests.hugepages-2Mi": "4Mi", "hugepages-2Mi": "2Mi"}},
        {"requests.example.com/gpu": "0", "requests.hugepages-2Mi": "0", "hugepages-2Mi": "0"},
    ),
    "claims": (
        {
            "hard": {
                "persistentvolumeclaims": "3",
                "requests.storage": "10Gi",
                "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
            }
        },
        {
            "persistentvolumeclaims": "0",
            "requests.storage": "1Gi",
            "fast.storageclass.storage.k8s.io/requests.storage": "0",
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
        },
    ),
    "services": (
        {"hard": {"services": "9", "services.nodeports": "1", "services.loadbalancers": "0"}},
        {"services": "8", "services.nodeports": "0", "services.loadbalancers": "0"},
    ),
    "counted": (
        {
            "hard": {
                "secrets": "0",
                "count/secrets": "1",
                "replicationcontrollers": "0",
                "count/deployments.apps": "0",
                "count/jobs.batch": "0",
                "count/resourcequotas": "1",
                "count/persistentvolumeclaims": "1",
            }
        },
        {
            "secrets": "0",
            "count/secrets": "0",
            "replicationcontrollers": "0",
            "count/deployments.apps": "0",
            "count/jobs.batch": "0",
            "count/resourcequotas": "1",
            "count/persistentvolumeclaims": "1",
        },
    ),
    "devices": (
        {
            "hard": {
                "count/resourceclaims.resource.k8s.io": "0",
                "a.test.deviceclass.resource.k8s.io/devices": "1",
                "requests.deviceclass.resource.kubernetes.io/a.test": "1",
                "b.test.deviceclass.resource.k8s.io/devices": "31",
            }
        },
        {
            "count/resourceclaims.resource.k8s.io": "0",
            "a.test.deviceclass.resource.k8s.io/devices": "0",
            "requests.deviceclass.resource.kubernetes.io/a.test": "0",
            "b.test.deviceclass.resource.k8s.io/devices": "0",
        },
    ),
    "best effort": ({"hard": {"pods": "0"}, "scopes": ["BestEffort"]}, {"pods": "0"}),
    "not best effort": (
        {"hard": {"pods": "0", "requests.cpu": "0"}, "scopes": ["NotBestEffort"]},
        {"pods": "0", "requests.cpu": "0"},
    ),
    "terminating": (
        {"hard": {"pods": "0", "cpu": "0"}, "scopes": ["Terminating"]},
        {"pods": "0", "cpu": "0"},
    ),
    "not terminating": ({"hard": {"pods": "0"}, "scopes": ["NotTerminating"]}, {"pods": "0"}),
    "of other namespaces": (
        {"hard": {"pods": "0"}, "scopes": ["CrossNamespacePodAffinity"]},
        {"pods": "0"},
    ),
    "of a priority": (
        {"hard": {"pods": "0", "cpu": "1"}, "scopeSelector": _scoped("In", ["system-node-critical", "x"])},
        {"pods": "0", "cpu": "0"},
    ),
    "of any priority": ({"hard": {"pods": "0"}, "scopeSelector": _scoped("Exists", [])}, {"pods": "0"}),
    "of no priority": ({"hard": {"pods": "0"}, "scopeSelector": _scoped("DoesNotExist", [])}, {"pods": "0"}),
    "of other priorities": (
        {"hard": {"pods": "0"}, "scopeSelector": _scoped("NotIn", ["system-node-critical"])},
        {"pods": "0"},
    ),
    **{
        f"of attributes {operator}": (
            {
                "hard": {"persistentvolumeclaims": "0", "requests.storage": "0"},
                "scopeSelector": {
                    "matchExpressions": [{**ATTRIBUTES, "operator": operator, "values": values}]
                },
            },
            {"persistentvolumeclaims": "0", "requests.storage": "0"},
        )
        for operator, values in (("In", ["a"]), ("NotIn", ["a"]), ("Exists", []), ("DoesNotExist", []))
    },
    "unknown of others": (
        {"hard": {"requests.storage": "1", "count/resourceclaims.resource.k8s.io": "1", "secrets": "1"}},
        {"secrets": "0"},
    ),
    "unknown": ({"hard": {"pods": "1", "cpu": "1", "limits.cpu": "1", "services": "1"}}, {"limits.cpu": "0"}),
}


def _amounts(requests: dict[str, str] | None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    told = (("requests", requests), ("limits", limits))
    return {"resources": {name: amounts for name, amounts in told if amounts is not None}}


def _of_pods() -> Iterator[dict[str, Any]]:
    one: dict[str, Any] = {"name": "c", "image": "i"}
    for requests, limits in (
        (None, None),
        ({"cpu": "100m"}, None),
        ({"cpu": "800m", "memory": "2Gi"}, {"cpu": "1", "memory": "2Gi"}),
        ({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"}, {"cpu": "2", "ephemeral-storage": "3Gi"}),
        (None, {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}),
        (None, {"example.com/gpu": "2", "hugepages-2Mi": "4Mi", "cpu": "1", "memory": "1"}),
        ({"cpu": "0"}, {"cpu": "0"}),
        (None, {"deviceclass.resource.kubernetes.io/a.test": "3", "cpu": "1", "memory": "1"}),
    ):
        yield {"containers": [{**one, **_amounts(requests, limits)}]}
    yield {
        "initContainers": [{**one, "name": "i", **_amounts({"cpu": "2"})}],
        "containers": [{**one, **_amounts({"cpu": "100m"})}],
    }
    yield {
        "initContainers": [
            {**one, "name": "i", "restartPolicy": "Always", **_amounts({"cpu": "400m"}, {"cpu": "600m"})},
            {**one, "name": "j", **_amounts({"cpu": "300m"})},
        ],
        "containers": [{**one, **_amounts({"cpu": "600m"}, {"cpu": "600m"})}],
    }
    yield {
        **_amounts({"cpu": "2", "memory": "1Gi"}, {"cpu": "3", "memory": "2Gi"}),
        "containers": [one, {**one, "name": "d", **_amounts({"cpu": "1"})}],
    }
    yield {"activeDeadlineSeconds": 5, "containers": [one]}
    yield {"activeDeadlineSeconds": 5, "containers": [{**one, **_amounts({"cpu": "1"})}]}
    yield {"priorityClassName": "system-node-critical", "containers": [one]}
    term = {"topologyKey": "a", "labelSelector": {}}
    places: list[dict[str, Any]] = [{"namespaces": ["other"]}, {"namespaceSelector": {}}, {"namespaces": []}]
    for where in places:
        for kind in ("podAffinity", "podAntiAffinity"):
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, **where}]}
            yield {"affinity": {kind: required}, "containers": [one]}
    weighted = {"weight": 1, "podAffinityTerm": {**term, "namespaces": ["other"]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    yield {"affinity": {"podAffinity": preferred}, "containers": [one]}
    yield {"containers": [one, {"name": "second", "image": "i", **_amounts({"cpu": "1"})}]}


def _claim(storage: str, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"storage": storage}}
    return {
        "metadata": {"name": "n"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec},
    }


def _service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n"}, "spec": {"ports": [{"port": 1}], **spec}}


def _asked(count: int) -> dict[str, Any]:
    return {"deviceClassName": "a.test", "count": count}


def _device(name: str, mode: str = "ExactCount") -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": f"{name}.test", "allocationMode": mode}}


def _row(spec: dict[str, Any], used: dict[str, str]) -> list[Ask]:
    full = {"hard": {"configmaps": "0"}}
    claims = f"{BASE}/persistentvolumeclaims"
    spec_of: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec_of}
    set_of = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    devices = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims"
    device = {"name": "c", "exactly": _asked(2)}
    merge = {"Content_Type": MERGE_PATCH}

    def told(name: str, hard: dict[str, str], used: dict[str, str]) -> Ask:
        return Ask("PATCH", f"{QUOTAS}/{name}/status", {"status": {"hard": hard, "used": used}}, merge)

    made: list[tuple[str, dict[str, Any]]] = [
        *((PODS, {"metadata": {"name": "n"}, "spec": pod}) for pod in _of_pods()),
        *((claims, _claim(amount)) for amount in ("1Gi", "9Gi", "9217Mi", "100Gi")),
        *((claims, _claim(amount, storageClassName="fast")) for amount in ("1Gi", "2Gi", "20Gi")),
        *((claims, _claim("1Gi", volumeAttributesClassName=name)) for name in ("a", "b", "")),
        *(
            (SERVICES, _service(**spec))
            for spec in (
                {},
                {"type": "NodePort"},
                {"type": "NodePort", "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
                {"type": "LoadBalancer"},
                {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
                {"type": "ExternalName", "externalName": "a.test"},
            )
        ),
        (f"{BASE}/secrets", {"metadata": {"name": "n"}}),
        (f"{BASE}/replicationcontrollers", {"metadata": {"name": "n"}, "spec": {"template": template}}),
        ("/apis/apps/v1/namespaces/{ns}/deployments", {"metadata": {"name": "n"}, "spec": set_of}),
        (
            "/apis/batch/v1/namespaces/{ns}/jobs",
            {
                "metadata": {"name": "n"},
                "spec": {"template": {"spec": {**spec_of, "restartPolicy": "Never"}}},
            },
        ),
        (QUOTAS, _quota("n", hard={"pods": "1"})),
        *(
            (devices, {"metadata": {"name": "n"}, "spec": {"devices": {"requests": asked}}})
            for asked in (
                [device],
                [_device("a"), _device("b", "All")],
                [{"name": "a", "firstAvailable": [{**_asked(3), "name": "x"}, {**_asked(2), "name": "y"}]}],
                [
                    {
                        "name": "a",
                        "firstAvailable": [
                            {**_asked(1), "name": "x"},
                            {"deviceClassName": "b.test", "allocationMode": "All", "name": "y"},
                        ],
                    },
                    device,
                ],
            )
        ),
    ]
    changed = (
        (f"{SERVICES}/old", {"spec": {"type": "NodePort"}}),
        (f"{SERVICES}/old", {"spec": {"type": "LoadBalancer"}}),
        (f"{SERVICES}/old", {"metadata": {"labels": {"a": "b"}}}),
        (f"{PODS}/old", {"metadata": {"labels": {"a": "b"}}}),
        (f"{PODS}/old", {"spec": {"activeDeadlineSeconds": 3}}),
        (f"{SERVICES}/old/status", {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
        (f"{claims}/old", {"metadata": {"labels": {"a": "b"}}}),
        (f"{claims}/old", {"spec": {"volumeAttributesClassName": "a"}}),
        (f"{claims}/old/status", {"status": {"phase": "Lost"}}),
        (f"{claims}/old/status", {"status": {"currentVolumeAttributesClassName": "a"}}),
        (f"{claims}/old/status", {"status": {"allocatedResources": {"storage": "30Gi"}}}),
        (f"{devices}/old", {"metadata": {"labels": {"a": "b"}}}),
        (f"{devices}/old/status", {"metadata": {"labels": {"a": "b"}}}),
        (f"{BASE}/secrets/old", {"metadata": {"labels": {"a": "b"}}}),
        (f"{PODS}/old/resize", {"spec": {"containers": [{"name": "c", **_amounts({"cpu": "5"})}]}}),
        (f"{PODS}/old/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}),
        (f"{PODS}/old/status", {"status": {"phase": "Failed"}}),
    )
    patch = {"Content_Type": STRATEGIC_PATCH}
    return [
        Ask("POST", PODS, _pod("old", "100m")),
        Ask("POST", SERVICES, {"metadata": {"name": "old"}, "spec": {"ports": [{"port": 1}]}}),
        Ask("POST", claims, {**_claim("1Gi", storageClassName="none"), "metadata": {"name": "old"}}),
        Ask("POST", devices, {"metadata": {"name": "old"}, "spec": {"devices": {"requests": [device]}}}),
        Ask("POST", f"{BASE}/secrets", {"metadata": {"name": "old"}}),
        Ask("POST", QUOTAS, _quota("q", **spec)),
        told("q", spec["hard"], used),
        Ask("POST", QUOTAS, _quota("z", **full)),
        told("z", full["hard"], full["hard"]),
        Ask("POST", f"{MAPS}?dryRun=All", _map("n"), until=403),
        *(Ask("POST", f"{target}?dryRun=All", body, what=str(body.get("spec"))) for target, body in made),
        *(Ask("PATCH", f"{target}?dryRun=All", body, patch, str(body)) for target, body in changed),
        Ask("GET", f"{QUOTAS}/q"),
    ]


@pytest.mark.parametrize("name", ROWS)
def test_what_has_a_quota(name: str, kubernetes: Server, podling: Server) -> None:
    compared = Compared(name, _row(*ROWS[name]), apart=True)
    found = unnamed(differences(compared, f"quota-{name.replace(' ', '-').lower()}", kubernetes, podling))
    assert not found, f"\n{shown(compared, found)}"
