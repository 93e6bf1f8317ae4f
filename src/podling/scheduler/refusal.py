"""Why a node does not take a pod: plugin and reasons in Kubernetes' words."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """`filter` is kube-scheduler's plugin name. `final` says that preemption cannot help."""

    filter: str
    reasons: tuple[str, ...]
    final: bool = False


NODE_UNSCHEDULABLE = "NodeUnschedulable"
NODE_NAME = "NodeName"
TAINT_TOLERATION = "TaintToleration"
NODE_AFFINITY = "NodeAffinity"
NODE_PORTS = "NodePorts"
NODE_RESOURCES = "NodeResourcesFit"
TOPOLOGY_SPREAD = "PodTopologySpread"
POD_AFFINITY = "InterPodAffinity"
DECLARED_FEATURES = "NodeDeclaredFeatures"
