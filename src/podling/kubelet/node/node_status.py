"""The Node a kubelet reports: labels, capacity, conditions, in Kubernetes' words. Pure.

The conditions' reasons and messages are those every client of Kubernetes knows. Pressure is reported as
absent until eviction measures it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.config import KubeletConfig
from podling.kubelet.node.machine import Machine
from podling.model.container import ResourceList
from podling.model.meta import ObjectMeta
from podling.model.node import (
    ContainerImage,
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSwapStatus,
    NodeSystemInfo,
)
from podling.model.quantity import Quantity
from podling.model.time import rfc3339

RUNTIME_DOWN = "container runtime is down"
IMAGES_REPORTED = 50
_EVICTION_MEMORY = 100 * 1024 * 1024
_EVICTION_DISK_PERCENT = 10


@dataclass(frozen=True, slots=True)
class RuntimeReport:
    """What the runtime said of itself; no conditions at all when it does not answer."""

    name: str = ""
    version: str = ""
    conditions: Sequence[pb.RuntimeCondition] = ()
    images: Sequence[pb.Image] = ()


def new_node(config: KubeletConfig, machine: Machine, status: NodeStatus) -> Node:
    return Node(
        metadata=ObjectMeta(
            name=config.node_name,
            labels=node_labels(config, machine),
            annotations={"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        ),
        spec=NodeSpec(pod_cidr=config.pod_cidr, pod_cidrs=[config.pod_cidr] if config.pod_cidr else []),
        status=status,
    )


def node_labels(config: KubeletConfig, machine: Machine) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": machine.architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine.architecture,
        "kubernetes.io/hostname": config.node_name,
        "kubernetes.io/os": "linux",
        **config.node_labels,
    }


def node_status(
    config: KubeletConfig, machine: Machine, runtime: RuntimeReport, old: NodeStatus, now: datetime
) -> NodeStatus:
    """`old` keeps the transition times of conditions that stay as they are."""
    return NodeStatus(
        capacity=capacity(config, machine),
        allocatable=allocatable(config, machine),
        conditions=[_since(condition, old, now) for condition in _conditions(runtime)],
        addresses=[
            NodeAddress(type="InternalIP", address=config.node_ip),
            NodeAddress(type="Hostname", address=machine.hostname),
        ],
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=config.kubelet_port)),
        node_info=_node_info(config, machine, runtime),
        images=_images(runtime.images),
    )


def differs(old: NodeStatus, new: NodeStatus) -> bool:
    """Whether there is more to say than that time has passed."""
    return _timeless(old) != _timeless(new)


def _timeless(status: NodeStatus) -> tuple[object, ...]:
    conditions = [(c.type, c.status, c.reason, c.message) for c in status.conditions]
    rest = status.capacity, status.allocatable, status.addresses, status.daemon_endpoints, status.node_info
    return (conditions, *rest, status.images)


def capacity(config: KubeletConfig, machine: Machine) -> ResourceList:
    return {
        "cpu": Quantity(machine.cpus),
        "ephemeral-storage": _kibibytes(machine.disk),
        "hugepages-1Gi": Quantity(0),
        "hugepages-2Mi": Quantity(0),
        "memory": _kibibytes(machine.memory),
        "pods": Quantity(config.max_pods),
    }


def allocatable(config: KubeletConfig, machine: Machine) -> ResourceList:
    """What eviction keeps free is not for pods."""
    disk = machine.disk * (100 - _EVICTION_DISK_PERCENT) // 100
    memory = max(machine.memory - _EVICTION_MEMORY, 0)
    total = capacity(config, machine)
    return total | {"ephemeral-storage": Quantity(disk), "memory": _kibibytes(memory)}


def _kibibytes(size: int) -> Quantity:
    return Quantity(f"{size // 1024}Ki")


def _conditions(runtime: RuntimeReport) -> Iterable[NodeCondition]:
    yield NodeCondition(
        type="MemoryPressure",
        status="False",
        reason="KubeletHasSufficientMemory",
        message="kubelet has sufficient memory available",
    )
    yield NodeCondition(
        type="DiskPressure",
        status="False",
        reason="KubeletHasNoDiskPressure",
        message="kubelet has no disk pressure",
    )
    yield NodeCondition(
        type="PIDPressure",
        status="False",
        reason="KubeletHasSufficientPID",
        message="kubelet has sufficient PID available",
    )
    yield _ready(runtime)


def _ready(runtime: RuntimeReport) -> NodeCondition:
    faults = list(_faults(runtime))
    if faults:
        message = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        return NodeCondition(type="Ready", status="False", reason="KubeletNotReady", message=message)
    return NodeCondition(
        type="Ready", status="True", reason="KubeletReady", message="kubelet is posting ready status"
    )


def _faults(runtime: RuntimeReport) -> Iterable[str]:
    if not runtime.conditions:
        yield RUNTIME_DOWN
    subjects = {"RuntimeReady": "container runtime", "NetworkReady": "container runtime network"}
    for condition in runtime.conditions:
        if condition.type in subjects and not condition.status:
            yield (
                f"{subjects[condition.type]} not ready: {condition.type}=false "
                f"reason:{condition.reason} message:{condition.message}"
            )


def _since(condition: NodeCondition, old: NodeStatus, now: datetime) -> NodeCondition:
    before = next((c for c in old.conditions if c.type == condition.type), None)
    stays = before is not None and before.status == condition.status
    condition.last_transition_time = before.last_transition_time if before and stays else rfc3339(now)
    condition.last_heartbeat_time = rfc3339(now)
    return condition


def _node_info(config: KubeletConfig, machine: Machine, runtime: RuntimeReport) -> NodeSystemInfo:
    return NodeSystemInfo(
        machine_id=machine.machine_id,
        system_uuid=machine.system_uuid,
        boot_id=machine.boot_id,
        kernel_version=machine.kernel_version,
        os_image=machine.os_image,
        container_runtime_version=f"{runtime.name}://{runtime.version}",
        kubelet_version=config.version,
        operating_system="linux",
        architecture=machine.architecture,
        swap=NodeSwapStatus(capacity=machine.swap) if machine.swap else None,
    )


def _images(images: Sequence[pb.Image]) -> list[ContainerImage]:
    largest = sorted(images, key=lambda image: (-image.size, image.id))[:IMAGES_REPORTED]
    return [
        ContainerImage(names=[*image.repo_digests, *image.repo_tags], size_bytes=image.size)
        for image in largest
    ]
