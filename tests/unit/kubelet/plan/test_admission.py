"""What the node says to a pod, as tables (R-INIT-9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.kubelet.plan.admission import (
    Refusal,
    Shortage,
    amounts,
    is_critical,
    misplaced,
    shortages,
    unfit,
)
from podling.model.quantity import Quantity
from podling.model.types.container import ContainerPort
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node, NodeSpec, Taint
from podling.model.types.pod import Pod, PodOS, Toleration

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

NODE = Node(metadata=ObjectMeta(name="n1", labels={"disk": "fast"}))


def resources(text: str) -> dict[str, Quantity]:
    return {name: Quantity(value) for name, value in (word.split("=") for word in text.split())}


def pod_of(scene: type[Scene], requests: str = "", shape: str = "a", **spec: Any) -> Pod:
    pod = scene.pod(shape, node_name="n1", **spec)
    pod.spec.containers[0].resources.requests = resources(requests)
    return pod


SHORT = [
    # asked for             used by others                  reasons, in order
    ("cpu=1",               {"cpu": 1000},                  []),
    ("cpu=1",               {"cpu": 1001},                  ["OutOfcpu"]),
    ("memory=600 cpu=3",    {"memory": 500},                ["OutOfcpu", "OutOfmemory"]),
    ("cpu=1",               {"pods": 3, "cpu": 2000},       ["OutOfpods", "OutOfcpu"]),
    ("cpu=0",               {"cpu": 9000},                  []),
    ("ephemeral-storage=2", {},                             ["OutOfephemeral-storage"]),
    ("example.com/gpu=2",   {"example.com/gpu": 1},         ["OutOfexample.com/gpu"]),
    ("example.com/other=2", {},                             []),
    ("hugepages-2Mi=2Mi",   {},                             ["OutOfhugepages-2Mi"]),
]  # fmt: skip
ALL = resources("cpu=2 memory=1000 pods=3 ephemeral-storage=1 example.com/gpu=2")


@pytest.mark.parametrize(("requests", "used", "reasons"), SHORT)
def test_what_there_is_too_little_of(
    scene: type[Scene], requests: str, used: dict[str, int], reasons: list[str]
) -> None:
    found = list(shortages(amounts(pod_of(scene, requests)), used, ALL))
    assert [shortage.refusal.reason for shortage in found] == reasons


def test_a_shortage_is_told_in_figures() -> None:
    shortage = Shortage("cpu", 1500, 1000, 2000)
    assert shortage.missing == 500
    assert shortage.refusal.message == (
        "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000"
    )


def test_a_pod_takes_its_effective_resources_and_its_place(scene: type[Scene]) -> None:
    pod = pod_of(scene, "cpu=1", "i / a b", overhead=resources("cpu=10m"))
    pod.spec.init_containers[0].resources.requests = resources("cpu=3")
    assert amounts(pod) == {"pods": 1, "cpu": 3010}


PLACES = [
    # spec                                                    again   reasons
    ({},                                                      False,  []),
    ({"node_selector": {"disk": "fast"}},                     False,  []),
    ({"node_selector": {"disk": "slow"}},                     False,  ["NodeAffinity"]),
    ({"node_selector": {"disk": "slow"}},                     True,   []),
    ({"node_name": "n2", "node_selector": {"disk": "slow"}},  False,  ["NodeAffinity", "NodeName"]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "again", "reasons"), PLACES)
def test_a_pod_in_the_wrong_place(
    scene: type[Scene], spec: dict[str, Any], again: bool, reasons: list[str]
) -> None:
    pod = scene.pod("a", **{"node_name": "n1", **spec})
    found = list(misplaced(pod, NODE, [], again=again))
    assert [refusal.reason for refusal in found] == reasons
    assert all(r.by_labels == (r.reason == "NodeAffinity") for r in found)


TAINTS = [
    ("NoSchedule", [], {}, []),
    ("NoExecute", [], {}, ["TaintToleration"]),
    ("NoExecute", [Toleration(operator="Exists")], {}, []),
    ("NoExecute", [], {"kubernetes.io/config.source": "file"}, []),
]


@pytest.mark.parametrize(("effect", "tolerations", "annotations", "reasons"), TAINTS)
def test_taints_that_execute_repel_all_but_static_pods(
    scene: type[Scene],
    effect: str,
    tolerations: list[Toleration],
    annotations: dict[str, str],
    reasons: list[str],
) -> None:
    node = Node(metadata=NODE.metadata, spec=NodeSpec(taints=[Taint(key="k", effect=effect)]))
    pod = pod_of(scene, tolerations=tolerations)
    pod.metadata.annotations = annotations
    assert [refusal.reason for refusal in misplaced(pod, node, [], again=False)] == reasons
    assert not list(misplaced(pod, node, [], again=True))


def test_a_host_port_is_taken_once(scene: type[Scene]) -> None:
    one, two = pod_of(scene), pod_of(scene)
    for pod, port in ((one, 80), (two, 80)):
        pod.spec.containers[0].ports = [ContainerPort(container_port=80, host_port=port)]
    assert [refusal.message for refusal in misplaced(one, NODE, [two], again=True)] == [
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    ]


@pytest.mark.parametrize(
    ("labels", "system", "reason"),
    [
        ({}, None, None),
        ({"kubernetes.io/os": "linux"}, "linux", None),
        ({"kubernetes.io/os": "windows"}, None, "PodOSSelectorNodeLabelDoesNotMatch"),
        ({}, "windows", "PodOSNotSupported"),
    ],
)
def test_pods_of_other_systems_are_not_for_this_node(
    scene: type[Scene], labels: dict[str, str], system: str | None, reason: str | None
) -> None:
    pod = pod_of(scene, os=PodOS(name=system) if system else None)
    pod.metadata.labels = labels
    refusal = unfit(pod)
    assert (refusal.reason if isinstance(refusal, Refusal) else None) == reason


@pytest.mark.parametrize(
    ("annotations", "priority", "critical"),
    [
        ({}, None, False),
        ({}, 1_999_999_999, False),
        ({}, 2_000_000_000, True),
        ({"kubernetes.io/config.source": "api"}, None, False),
        ({"kubernetes.io/config.source": "file"}, None, True),
        ({"kubernetes.io/config.mirror": "hash"}, None, True),
    ],
)
def test_who_is_critical(
    scene: type[Scene], annotations: dict[str, str], priority: int | None, critical: bool
) -> None:
    pod = pod_of(scene, priority=priority)
    pod.metadata.annotations = annotations
    assert is_critical(pod) is critical
