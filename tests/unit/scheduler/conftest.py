"""Short ways to write nodes, pods and clusters in tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podling.model.codec import json
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.scheduler.cluster import Cluster
from podling.scheduler.info import NodeInfo, PodInfo, pod_info

ALLOCATABLE = {"cpu": "2", "memory": "4Gi", "pods": "3"}


def make_node(
    name: str = "n1",
    spec: dict[str, Any] | None = None,
    allocatable: dict[str, str] | None = None,
    declares: Sequence[str] = (),
    **labels: str,
) -> Node:
    node = {
        "metadata": {"name": name, "labels": labels},
        "spec": spec or {},
        "status": {"allocatable": allocatable or ALLOCATABLE, "declaredFeatures": list(declares)},
    }
    return json.decode(json.encode(node), Node)


def make_pod(
    name: str = "p",
    cpu: str = "",
    memory: str = "",
    labels: dict[str, str] | None = None,
    namespace: str = "ns",
    status: dict[str, Any] | None = None,
    deleted: bool = False,
    **spec: Any,
) -> PodInfo:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    containers = spec.pop("containers", [{"name": "c", "resources": {"requests": requests}}])
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    pod = {"metadata": metadata, "spec": {"containers": containers, **spec}, "status": status or {}}
    return pod_info(json.decode(json.encode(pod), Pod))


def make_cluster(*nodes: Node, **pods: list[PodInfo]) -> Cluster:
    """`pods` are by the name of their node."""
    cluster = Cluster()
    for node in nodes:
        cluster.put_node(node)
    for name, there in pods.items():
        for pod in there:
            cluster.put_pod(pod, name)
    cluster.namespaces.update({"ns": {}, "other": {"team": "a"}})
    return cluster


@pytest.fixture
def node() -> Callable[..., Node]:
    return make_node


@pytest.fixture
def node_info() -> Callable[..., NodeInfo]:
    return lambda *args, **labels: NodeInfo(make_node(*args, **labels))


@pytest.fixture
def pod() -> Callable[..., PodInfo]:
    return make_pod


@pytest.fixture
def cluster() -> Callable[..., Cluster]:
    return make_cluster


@pytest.fixture(scope="session")
def node_maker() -> Callable[..., Node]:
    """For property tests, which run many times over one fixture."""
    return make_node


@pytest.fixture(scope="session")
def pod_maker() -> Callable[..., PodInfo]:
    return make_pod
