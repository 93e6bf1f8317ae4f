"""Short ways to write nodes and pods in tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.model import json
from podling.model.node import Node
from podling.model.pod import Pod
from podling.scheduler.node_info import NodeInfo

ALLOCATABLE = {"cpu": "2", "memory": "4Gi", "pods": "3"}


def make_node(name: str = "n1", spec: dict[str, Any] | None = None, **labels: str) -> NodeInfo:
    node = {
        "metadata": {"name": name, "labels": labels},
        "spec": spec or {},
        "status": {"allocatable": ALLOCATABLE},
    }
    return NodeInfo(json.decode(json.encode(node), Node))


def make_pod(name: str = "p", cpu: str = "", memory: str = "", **spec: Any) -> Pod:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    containers = spec.pop("containers", [{"name": "c", "resources": {"requests": requests}}])
    pod = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"containers": containers, **spec},
    }
    return json.decode(json.encode(pod), Pod)


@pytest.fixture
def node() -> Callable[..., NodeInfo]:
    return make_node


@pytest.fixture
def pod() -> Callable[..., Pod]:
    return make_pod
