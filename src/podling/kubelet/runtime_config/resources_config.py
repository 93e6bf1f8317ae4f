"""A container's share of the node, as CRI wants it: CPU shares and quota, memory limit, huge pages, and who
is killed first when memory runs out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cgroups.files import page_size
from podling.kubelet.cgroups.limits import CPU_PERIOD, cpu_quota, cpu_shares, huge_pages
from podling.kubelet.container_types import ContainerType
from podling.kubelet.node.node_facts import NodeFacts
from podling.kubelet.planning.admission import SYSTEM_CRITICAL_PRIORITY
from podling.model.container import EphemeralContainerCommon, ResourceList
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.resources import BEST_EFFORT, GUARANTEED, pod_limits, pod_requests, qos_class

NODE_CRITICAL_CLASS = "system-node-critical"
PROTECTED = -997
FIRST_TO_GO = 1000
_ZERO = Quantity("0")


def linux_resources(
    pod: Pod, container: EphemeralContainerCommon, kind: ContainerType, node: NodeFacts
) -> pb.LinuxContainerResources:
    """A container without a limit of its own is told the pod's, where the pod has said one."""
    requests, limits = container.resources.requests, container.resources.limits
    memory = _limit(pod, limits, "memory").value()
    return pb.LinuxContainerResources(
        cpu_shares=cpu_shares((requests.get("cpu") or limits.get("cpu") or _ZERO).milli_value()),
        cpu_period=CPU_PERIOD,
        cpu_quota=cpu_quota(_limit(pod, limits, "cpu").milli_value()),
        memory_limit_in_bytes=memory,
        # Memory and swap together: none is left for swap.
        memory_swap_limit_in_bytes=memory if node.swap_is_limited else 0,
        hugepage_limits=_huge_pages(limits, node.page_sizes),
        oom_score_adj=oom_score_adj(pod, container, kind, node.memory_bytes),
        unified=node.cgroup2_settings,
    )


def sandbox_resources(pod: Pod) -> pb.LinuxContainerResources:
    """What the containers of a pod may take together, for runtimes that size a machine by it."""
    return _together(pod_requests(_without_overhead(pod)), pod_limits(_without_overhead(pod)))


def overhead_resources(pod: Pod) -> pb.LinuxContainerResources | None:
    return _together(pod.spec.overhead, pod.spec.overhead) if pod.spec.overhead else None


def _together(requests: ResourceList, limits: ResourceList) -> pb.LinuxContainerResources:
    return pb.LinuxContainerResources(
        cpu_shares=cpu_shares(requests.get("cpu", _ZERO).milli_value()),
        cpu_period=CPU_PERIOD,
        cpu_quota=cpu_quota(limits.get("cpu", _ZERO).milli_value()),
        memory_limit_in_bytes=limits.get("memory", _ZERO).value(),
    )


def _limit(pod: Pod, limits: ResourceList, resource: str) -> Quantity:
    of_pod = pod.spec.resources.limits if pod.spec.resources else {}
    return limits.get(resource) or of_pod.get(resource) or _ZERO


def _huge_pages(limits: ResourceList, sizes: Iterable[int]) -> Iterable[pb.HugepageLimit]:
    """None of the pages it did not ask for."""
    allowed = dict.fromkeys(sizes, 0) | huge_pages(limits)
    return [pb.HugepageLimit(page_size=page_size(size), limit=limit) for size, limit in allowed.items()]


def oom_score_adj(
    pod: Pod, container: EphemeralContainerCommon, kind: ContainerType, node_memory: int
) -> int:
    """Guaranteed and node-critical pods are protected, BestEffort goes first, Burstable by what it asked
    for.
    """
    quality = qos_class(pod)
    if quality == GUARANTEED or is_node_critical(pod):
        return PROTECTED
    if quality == BEST_EFFORT or not node_memory:
        return FIRST_TO_GO
    share = _share_of_the_rest(pod)
    score = _score(_memory(container) + share, node_memory)
    if kind is ContainerType.SIDECAR:
        # A sidecar must not be killed before the app container it serves.
        score = min(score, _score(min(_memory(c) for c in pod.spec.containers) + share, node_memory))
    return min(max(score, FIRST_TO_GO + PROTECTED), FIRST_TO_GO - 1)


def is_node_critical(pod: Pod) -> bool:
    critical = (pod.spec.priority or 0) >= SYSTEM_CRITICAL_PRIORITY
    return critical and pod.spec.priority_class_name == NODE_CRITICAL_CLASS


def _score(memory: int, node_memory: int) -> int:
    return FIRST_TO_GO - FIRST_TO_GO * memory // node_memory


def _memory(container: EphemeralContainerCommon) -> int:
    return (container.resources.requests.get("memory") or _ZERO).value()


def _share_of_the_rest(pod: Pod) -> int:
    """Of what the pod asked for as a whole and none of its containers did, each has the same part."""
    asked = pod.spec.resources.requests.get("memory") if pod.spec.resources else None
    if not asked:
        return 0
    of_containers = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, resources=None, overhead={})
    )
    rest = asked.value() - pod_requests(of_containers).get("memory", _ZERO).value()
    return rest // len(pod.spec.containers)


def _without_overhead(pod: Pod) -> Pod:
    if not pod.spec.overhead:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, overhead={}))
