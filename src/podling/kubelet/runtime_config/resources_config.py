"""A container's share of the node, as CRI wants it: CPU shares and quota, memory limit, and who is killed
first when memory runs out.
"""

from __future__ import annotations

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.container_types import ContainerType
from podling.model.container import EphemeralContainerCommon
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.resources import qos_class

CPU_PERIOD = 100_000
MINIMUM_QUOTA = 1_000
MINIMUM_SHARES = 2
MAXIMUM_SHARES = 262_144
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
PROTECTED = -997
FIRST_TO_GO = 1000
_ZERO = Quantity("0")


def linux_resources(
    pod: Pod, container: EphemeralContainerCommon, kind: ContainerType, node_memory: int
) -> pb.LinuxContainerResources:
    limits, requests = container.resources.limits, container.resources.requests
    cpu = requests.get("cpu") or limits.get("cpu") or _ZERO
    cpu_limit = limits.get("cpu") or _ZERO
    return pb.LinuxContainerResources(
        cpu_shares=cpu_shares(cpu.milli_value()),
        cpu_period=CPU_PERIOD,
        cpu_quota=cpu_quota(cpu_limit.milli_value()),
        memory_limit_in_bytes=(limits.get("memory") or _ZERO).value(),
        oom_score_adj=oom_score_adj(pod, container, kind, node_memory),
    )


def cpu_shares(milli: int) -> int:
    return min(max(milli * 1024 // 1000, MINIMUM_SHARES), MAXIMUM_SHARES)


def cpu_quota(milli: int) -> int:
    """0 means no limit."""
    return max(milli * CPU_PERIOD // 1000, MINIMUM_QUOTA) if milli else 0


def oom_score_adj(
    pod: Pod, container: EphemeralContainerCommon, kind: ContainerType, node_memory: int
) -> int:
    """Guaranteed and system-critical pods are protected, BestEffort goes first, Burstable by what it asked
    for.
    """
    quality = qos_class(pod)
    if quality == "Guaranteed" or (pod.spec.priority or 0) >= SYSTEM_CRITICAL_PRIORITY:
        return PROTECTED
    if quality == "BestEffort" or not node_memory:
        return FIRST_TO_GO
    score = _score(_memory(container), node_memory)
    if kind is ContainerType.SIDECAR:
        # A sidecar must not be killed before the app container it serves.
        score = min(score, _score(min(_memory(c) for c in pod.spec.containers), node_memory))
    return min(max(score, FIRST_TO_GO + PROTECTED), FIRST_TO_GO - 1)


def _score(memory: int, node_memory: int) -> int:
    return FIRST_TO_GO - FIRST_TO_GO * memory // node_memory


def _memory(container: EphemeralContainerCommon) -> int:
    return (container.resources.requests.get("memory") or _ZERO).value()
