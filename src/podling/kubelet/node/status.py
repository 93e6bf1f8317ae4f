"""The Node object as the kubelet reports it: labels, capacity, allocatable, conditions. Pure.

Reasons and messages of the conditions are Kubernetes' own, as clients match on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.cgroup_limits import HUGE_PAGES
from podling.kubelet.host.machine import Machine
from podling.kubelet.node.features import declared_features
from podling.model.codec.json import to_data
from podling.model.quantity import Quantity
from podling.model.time import rfc3339
from podling.model.types.container import ResourceList
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import (
    ContainerImage,
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeFeatures,
    NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures,
    NodeSpec,
    NodeStatus,
    NodeSwapStatus,
    NodeSystemInfo,
)

RUNTIME_DOWN = "container runtime is down"
PRESSURES = {
    "MemoryPressure": (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}
"""Reason and message of each condition, while there is enough and while there is not."""
IMAGES_REPORTED = 50
_MAY_GO = ("images", "runtimeHandlers", "features", "declaredFeatures")
"""The kubelet's fields that are left out when they are empty."""
_EVICTION_MEMORY = 100 * 1024 * 1024
_EVICTION_DISK_PERCENT = 10
_NOTHING = Quantity("0")


class RuntimeReport(msgspec.Struct, frozen=True):
    """The runtime's answers about itself; `name` is "" if it did not answer."""

    name: str = ""
    version: str = ""
    status: pb.StatusResponse = msgspec.field(default_factory=pb.StatusResponse)
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
    config: KubeletConfig,
    machine: Machine,
    runtime: RuntimeReport,
    old: NodeStatus,
    now: datetime,
    pressures: Collection[str] = (),
) -> NodeStatus:
    """`old` gives the transition times of unchanged conditions; `pressures` are the conditions that are
    True."""
    return NodeStatus(
        capacity=capacity(config, machine),
        allocatable=allocatable(config, machine),
        conditions=[_since(c, old, now) for c in _conditions(runtime.status.status, pressures)],
        addresses=[
            NodeAddress(type="InternalIP", address=config.node_ip),
            NodeAddress(type="Hostname", address=machine.hostname),
        ],
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=config.kubelet_port)),
        node_info=_node_info(config, machine, _runtime_version(runtime, old)),
        images=_images(runtime.images),
        runtime_handlers=_handlers(runtime.status) if runtime.name else old.runtime_handlers,
        features=_features(runtime.status) if runtime.name else old.features,
        declared_features=declared_features(config.gates),
    )


def status_patch(status: NodeStatus) -> dict[str, object]:
    """The body of a patch; a field that is empty now is sent as null, so that it is removed."""
    told = {**dict.fromkeys(_MAY_GO), **to_data(status)}
    told["nodeInfo"] = {"swap": None, **told["nodeInfo"]}
    return {"status": told}


def differs(old: NodeStatus, new: NodeStatus) -> bool:
    """Whether anything but heartbeat times differs."""
    return _timeless(old) != _timeless(new)


def _timeless(status: NodeStatus) -> tuple[object, ...]:
    conditions = [(c.type, c.status, c.reason, c.message) for c in status.conditions]
    place = status.addresses, status.daemon_endpoints, status.node_info
    can = status.runtime_handlers, status.features, status.declared_features
    return (conditions, status.capacity, status.allocatable, *place, status.images, *can)


def capacity(config: KubeletConfig, machine: Machine) -> ResourceList:
    pages = {2 << 20: 0, 1 << 30: 0, **machine.huge_pages}
    return {
        "cpu": Quantity(machine.cpus),
        "ephemeral-storage": _kibibytes(machine.disk),
        **{
            f"{HUGE_PAGES}{Quantity.of_bytes(size)}": Quantity.of_bytes(pages[size]) for size in sorted(pages)
        },
        "memory": _kibibytes(machine.memory),
        "pods": Quantity(config.max_pods),
    }


def allocatable(config: KubeletConfig, machine: Machine) -> ResourceList:
    """Capacity less systemReserved, kubeReserved, the default eviction thresholds, and for memory the huge
    pages."""
    left = capacity(config, machine)
    disk = machine.disk * _EVICTION_DISK_PERCENT // 100
    kept = {
        "memory": Quantity.of_bytes(_EVICTION_MEMORY + sum(machine.huge_pages.values())),
        "ephemeral-storage": Quantity.of_bytes(disk),
    }
    for share in (kept, reserved(config)):
        for name in left.keys() & share.keys():
            left[name] = max(left[name] - share[name], _NOTHING)
    return left


def reserved(config: KubeletConfig) -> ResourceList:
    """For the system's processes and Kubernetes' own."""
    total = dict(config.system_reserved)
    for name, amount in config.kube_reserved.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def _kibibytes(size: int) -> Quantity:
    return Quantity(f"{size // 1024}Ki")


def _conditions(runtime: pb.RuntimeStatus, pressures: Collection[str]) -> Iterable[NodeCondition]:
    for kind, ((well, all_is_well), (ill, what_is_ill)) in PRESSURES.items():
        if kind in pressures:
            yield NodeCondition(type=kind, status="True", reason=ill, message=what_is_ill)
        else:
            yield NodeCondition(type=kind, status="False", reason=well, message=all_is_well)
    yield _ready(runtime)


def _ready(runtime: pb.RuntimeStatus) -> NodeCondition:
    faults = list(_faults(runtime))
    if faults:
        message = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        return NodeCondition(type="Ready", status="False", reason="KubeletNotReady", message=message)
    return NodeCondition(
        type="Ready", status="True", reason="KubeletReady", message="kubelet is posting ready status"
    )


def _faults(runtime: pb.RuntimeStatus) -> Iterable[str]:
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


def _runtime_version(runtime: RuntimeReport, old: NodeStatus) -> str:
    """`<name>://<version>`; while the runtime does not answer the name is the one in `old`."""
    name = runtime.name or old.node_info.container_runtime_version.partition("://")[0]
    return f"{name}://{runtime.version or 'Unknown'}"


def _node_info(config: KubeletConfig, machine: Machine, runtime_version: str) -> NodeSystemInfo:
    return NodeSystemInfo(
        machine_id=machine.machine_id,
        system_uuid=machine.system_uuid,
        boot_id=machine.boot_id,
        kernel_version=machine.kernel_version,
        os_image=machine.os_image,
        container_runtime_version=runtime_version,
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


def _handlers(status: pb.StatusResponse) -> list[NodeRuntimeHandler]:
    return [
        NodeRuntimeHandler(
            name=handler.name,
            features=NodeRuntimeHandlerFeatures(
                recursive_read_only_mounts=handler.features.recursive_read_only_mounts,
                user_namespaces=handler.features.user_namespaces,
            ),
        )
        for handler in status.runtime_handlers
    ]


def _features(status: pb.StatusResponse) -> NodeFeatures | None:
    """None of a runtime that does not say."""
    if not status.HasField("features"):
        return None
    return NodeFeatures(supplemental_groups_policy=status.features.supplemental_groups_policy)
