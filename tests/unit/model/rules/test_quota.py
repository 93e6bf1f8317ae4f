"""R-SYS-3, R-INIT-9: what objects count for in a quota."""

from __future__ import annotations

from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.quantity import Quantity
from podling.model.rules.quota import in_scope, limited, listed, total, unsaid, usage
from podling.model.scheme import resource_of
from podling.model.types.coordination import Lease
from podling.model.types.core import ConfigMap, ResourceQuotaSpec
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.service import Service

LOAD_BALANCER = (("loadbalancers", "1"), ("nodeports", "2"))


def container(name: str = "a", **resources: Any) -> dict[str, Any]:
    return {"name": name, "resources": resources}


def pod(*containers: dict[str, Any], phase: str = "", **spec: Any) -> Pod:
    return from_data({"spec": {"containers": list(containers), **spec}, "status": {"phase": phase}}, Pod)


def abroad(**term: Any) -> Pod:
    """A pod with an anti-affinity term."""
    terms = [{"topologyKey": "zone", **term}]
    return pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def shown(used: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in used.items()}


def test_a_pod_uses_its_effective_resources() -> None:
    init = container("init", requests={"cpu": "2"})
    app = container(requests={"cpu": "1", "memory": "1Gi", "x.io/gpu": "1"}, limits={"memory": "2Gi"})
    assert shown(usage(pod(app, initContainers=[init]))) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "2",
        "requests.cpu": "2",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "requests.x.io/gpu": "1",
        "limits.memory": "2Gi",
    }


@pytest.mark.parametrize(
    ("obj", "used"),
    [
        (pod(phase="Failed"), {"count/pods": "1"}),
        (ConfigMap(), {"count/configmaps": "1", "configmaps": "1"}),
        (Lease(), {"count/leases.coordination.k8s.io": "1"}),
        (
            from_data({"spec": {"type": "LoadBalancer", "ports": [{}, {}]}}, Service),
            {
                "count/services": "1",
                "services": "1",
                "services.loadbalancers": "1",
                "services.nodeports": "2",
            },
        ),
        (
            from_data(
                {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1500m"}}}},
                PersistentVolumeClaim,
            ),
            {
                "count/persistentvolumeclaims": "1",
                "persistentvolumeclaims": "1",
                "requests.storage": "2",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "fast.storageclass.storage.k8s.io/requests.storage": "2",
            },
        ),
    ],
)
def test_usage(obj: Any, used: dict[str, str]) -> None:
    assert shown(usage(obj)) == used


@pytest.mark.parametrize(
    ("spec", "taken", "left"),
    [
        ({}, pod(), None),
        ({"scopes": ["Terminating"]}, pod(activeDeadlineSeconds=1), pod()),
        ({"scopes": ["NotTerminating"]}, pod(), pod(activeDeadlineSeconds=1)),
        ({"scopes": ["BestEffort"]}, pod(container()), pod(container(requests={"cpu": "1"}))),
        ({"scopes": ["CrossNamespacePodAffinity"]}, abroad(namespaces=["other"]), abroad()),
        ({"scopes": ["CrossNamespacePodAffinity"]}, abroad(namespaceSelector={}), pod()),
        ({"scopes": ["NotBestEffort"]}, pod(container(requests={"cpu": "1"})), ConfigMap()),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn",
             "values": ["high"]}]}},
            pod(priorityClassName="low"),
            pod(priorityClassName="high"),
        ),
    ],
)  # fmt: skip
def test_scopes(spec: Any, taken: Any, left: Any) -> None:
    quota = from_data(spec, ResourceQuotaSpec)
    assert in_scope(quota, taken)
    assert left is None or not in_scope(quota, left)


def test_what_is_not_said() -> None:
    one = pod(container("a", limits={"cpu": "1"}), container("b"))
    assert unsaid(one, ["limits.cpu", "memory", "pods"]) == {"limits.cpu": ["b"], "memory": ["a", "b"]}


@pytest.mark.parametrize(
    ("type", "hard", "expected"),
    [
        (Pod, "requests.cpu", True),
        (Pod, "requests.x.io/gpu", True),
        (Pod, "configmaps", False),
        (Service, "services.nodeports", True),
        (Lease, "count/leases.coordination.k8s.io", True),
        (Lease, "pods", False),
    ],
)
def test_which_kinds_a_quota_is_about(type: Any, hard: str, expected: bool) -> None:
    assert bool(limited(resource_of(type), [hard])) is expected


def test_totals_have_all_names_and_no_others() -> None:
    sums = total([usage(pod()), usage(pod()), usage(ConfigMap())], ["pods", "secrets"])
    assert listed(sums) == "pods=2,secrets=0"
