"""The Node object as the kubelet reports it: labels, capacity, allocatable, conditions. Pure.

Reasons and messages of the conditions are Kubernetes' own, as clients match on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.config import KubeletConfig
from podling.kubelet.host.cgroups import HUGE_PAGES
from podling.kubelet.host.machine import Machine
from podling.model.codec.json import to_data
from podling.model.errors import joined
from podling.model.gates import Gates
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
_NEWS = {
    "MemoryPressure": ("NodeHasSufficientMemory", "NodeHasInsufficientMemory"),
    "DiskPressure": ("NodeHasNoDiskPressure", "NodeHasDiskPressure"),
    "PIDPressure": ("NodeHasSufficientPID", "NodeHasInsufficientPID"),
    "Ready": ("NodeNotReady", "NodeReady"),
}
"""What the events say about a condition that has become False, and True."""
IMAGES_REPORTED = 50
IN_PLACE_RESIZE = "InPlacePodVerticalScaling"
_DECLARED = ("ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits")
_DECLARED_WITH_RESIZE = ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")
"""`status.declaredFeatures` has only what is new in Kubernetes v1.36: a feature that all supported versions
have leaves the list."""
_MAY_GO = ("images", "volumesInUse", "runtimeHandlers", "features", "declaredFeatures")
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
    """The Node to register, as Kubernetes' initialNode makes it."""
    subnets = config.pod_cidr.split(",")
    return Node(
        metadata=ObjectMeta(
            name=config.node_name,
            labels=node_labels(config, machine),
            annotations={"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        ),
        spec=NodeSpec(pod_cidr=subnets[0], pod_cidrs=subnets) if config.pod_cidr else NodeSpec(),
        status=status,
    )


def node_labels(config: KubeletConfig, machine: Machine) -> dict[str, str]:
    """The labels that a kubelet sets, and --node-labels."""
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
    in_use: Sequence[str] = (),
) -> NodeStatus:
    """`old` gives the transition times of unchanged conditions, and what a runtime that does not answer said
    before; `pressures` are the conditions that are True, `in_use` the attached volumes that the node has."""
    told = runtime.status
    runtime_name = runtime.name or old.node_info.container_runtime_version.partition("://")[0]
    handlers, features = old.runtime_handlers, old.features
    if runtime.name:
        handlers = [
            NodeRuntimeHandler(
                name=handler.name,
                features=NodeRuntimeHandlerFeatures(
                    recursive_read_only_mounts=handler.features.recursive_read_only_mounts,
                    user_namespaces=handler.features.user_namespaces,
                ),
            )
            for handler in told.runtime_handlers
        ]
        groups_policy = told.features.supplemental_groups_policy
        # None of a runtime that does not say.
        features = NodeFeatures(groups_policy) if told.HasField("features") else None
    images = sorted(runtime.images, key=lambda image: (-image.size, image.id))[:IMAGES_REPORTED]
    made = NodeStatus(
        capacity=capacity(config, machine),
        allocatable=allocatable(config, machine),
        conditions=_conditions(told.status, pressures, rfc3339(now)),
        addresses=[
            *(NodeAddress(type="InternalIP", address=one) for one in config.node_ips),
            NodeAddress(type="Hostname", address=machine.hostname),
        ],
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=config.kubelet_port)),
        node_info=_node_info(config, machine, f"{runtime_name}://{runtime.version or 'Unknown'}"),
        images=[
            ContainerImage(names=[*image.repo_digests, *image.repo_tags], size_bytes=image.size)
            for image in images
        ],
        volumes_in_use=list(in_use),
        runtime_handlers=handlers,
        features=features,
        declared_features=declared_features(config.gates),
    )
    return with_transitions_of(old, made)


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


def _conditions(runtime: pb.RuntimeStatus, pressures: Collection[str], now: str) -> list[NodeCondition]:
    found = []
    for kind, (well, ill) in PRESSURES.items():
        reason, message = ill if kind in pressures else well
        found.append(NodeCondition(type=kind, status=str(kind in pressures), reason=reason, message=message))
    subjects = {"RuntimeReady": "container runtime", "NetworkReady": "container runtime network"}
    faults = [
        f"{subjects[told.type]} not ready: {told.type}=false reason:{told.reason} message:{told.message}"
        for told in runtime.conditions
        if told.type in subjects and not told.status
    ]
    if not runtime.conditions:
        faults = [RUNTIME_DOWN]
    if faults:
        message = joined(faults)
        found.append(NodeCondition(type="Ready", status="False", reason="KubeletNotReady", message=message))
    else:
        message = "kubelet is posting ready status"
        found.append(NodeCondition(type="Ready", status="True", reason="KubeletReady", message=message))
    for condition in found:
        condition.last_heartbeat_time = condition.last_transition_time = now
    return found


def declared_features(gates: Gates) -> list[str]:
    """Sorted, as control planes want them."""
    return sorted((*_DECLARED, *(_DECLARED_WITH_RESIZE if gates.enabled(IN_PLACE_RESIZE) else ())))


def with_transitions_of(old: NodeStatus, new: NodeStatus) -> NodeStatus:
    """`new` with the transition times of the conditions in `old` that have not changed."""
    before = {condition.type: condition for condition in old.conditions}
    for condition in new.conditions:
        known = before.get(condition.type)
        if known is not None and known.status == condition.status:
            condition.last_transition_time = known.last_transition_time
    return new


def status_patch(status: NodeStatus) -> dict[str, object]:
    """The body of a patch; a field that is empty now is sent as null, so that it is removed."""
    told = {**dict.fromkeys(_MAY_GO), **to_data(status)}
    told["nodeInfo"] = {"swap": None, **told["nodeInfo"]}
    # Addresses would be merged by their types, of which a node with two families has one twice.
    told["addresses"] = [*told.get("addresses", ()), {"$patch": "replace"}]
    return {"status": told}


def news(old: NodeStatus, new: NodeStatus) -> Iterator[str]:
    """The reasons of the events about conditions that have changed, or are told for the first time."""
    before = {condition.type: condition.status for condition in old.conditions}
    for condition in new.conditions:
        is_true, was = condition.status == "True", before.get(condition.type)
        # That a node which has just come is not ready yet is no news.
        is_new = condition.status != was and (condition.type != "Ready" or is_true or was is not None)
        if is_new and condition.type in _NEWS:
            yield _NEWS[condition.type][is_true]


def differs(old: NodeStatus, new: NodeStatus) -> bool:
    """Whether anything but heartbeat times differs."""
    return _timeless(old) != _timeless(new)


def _timeless(status: NodeStatus) -> tuple[object, ...]:
    conditions = [(c.type, c.status, c.reason, c.message) for c in status.conditions]
    place = status.addresses, status.daemon_endpoints, status.node_info
    can = status.runtime_handlers, status.features, status.declared_features
    has = status.images, status.volumes_in_use
    return (conditions, status.capacity, status.allocatable, *place, *has, *can)


def capacity(config: KubeletConfig, machine: Machine) -> ResourceList:
    """What the machine has, by resource; huge pages of 2Mi and 1Gi also where there are none."""
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
