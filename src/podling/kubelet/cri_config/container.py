"""The CRI's ContainerConfig, with its labels, annotations and resources, as Kubernetes' kubelet writes it.
Pure.

A kubelet that restarts recognizes sandboxes and containers by their labels and annotations (R-INIT-11,
R-DBG-3). Their names are Kubernetes', except for five of podling's own: the container type (a label), the
number of consecutive failures before the instance (`plan/restart.py`), its restart generation
(`plan/restart.py`), the resources it was created with, and its stop signal, which not every runtime keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.cri_config.environment import expand
from podling.kubelet.cri_config.security import NODES_USERS, UNSPECIFIED, ImageUser, container_security
from podling.kubelet.host.cgroups import CPU_PERIOD, cpu_quota, cpu_shares, huge_pages, page_size
from podling.kubelet.plan.admission import SYSTEM_CRITICAL_PRIORITY
from podling.kubelet.plan.resize import resources_to_actuate
from podling.kubelet.plan.restart import definition_hash
from podling.kubelet.pod.actions import StartContainer
from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.directories import log_path
from podling.kubelet.pod.sandbox import NodeFacts
from podling.model.codec.json import decode, encode
from podling.model.quantity import Quantity
from podling.model.rules.resources import BEST_EFFORT, GUARANTEED, pod_limits, pod_requests, qos_class
from podling.model.types.container import (
    ContainerPort,
    EphemeralContainerCommon,
    Lifecycle,
    LifecycleHandler,
    ResourceList,
    ResourceRequirements,
)
from podling.model.types.pod import Pod

C = TypeVar("C", bound=EphemeralContainerCommon)

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"
CONTAINER_TYPE = "io.kubernetes.container.type"

HASH = "io.kubernetes.container.hash"
RESTART_COUNT = "io.kubernetes.container.restartCount"
TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"
PRE_STOP_HANDLER = "io.kubernetes.container.preStopHandler"
PORTS = "io.kubernetes.container.ports"
DELETION_GRACE_PERIOD = "io.kubernetes.pod.deletionGracePeriod"
TERMINATION_GRACE_PERIOD = "io.kubernetes.pod.terminationGracePeriod"
CRASHES = "podling.io/container.crashes"
RESOURCES = "podling.io/container.resources"
ROUND = "podling.io/container.round"
STOP_SIGNAL = "podling.io/container.stopSignal"
NODE_CRITICAL_CLASS = "system-node-critical"
PROTECTED = -997
FIRST_TO_GO = 1000
_ZERO = Quantity("0")


def pod_labels(pod: Pod) -> dict[str, str]:
    meta = pod.metadata
    return {**meta.labels, POD_NAME: meta.name, POD_NAMESPACE: meta.namespace, POD_UID: meta.uid}


def container_labels(pod: Pod, name: str, kind: ContainerType) -> dict[str, str]:
    """By these a kubelet that restarts finds the container's pod, name and type."""
    meta = pod.metadata
    return {
        POD_NAME: meta.name,
        POD_NAMESPACE: meta.namespace,
        POD_UID: meta.uid,
        CONTAINER_NAME: name,
        CONTAINER_TYPE: kind.value,
    }


def container_annotations(
    pod: Pod, container: EphemeralContainerCommon, start: StartContainer
) -> dict[str, str]:
    """What a later kubelet needs to know of this instance, also to stop it after the pod's object is gone."""
    written = {
        HASH: definition_hash(container),
        RESTART_COUNT: str(start.attempt),
        TERMINATION_MESSAGE_PATH: container.termination_message_path,
        TERMINATION_MESSAGE_POLICY: container.termination_message_policy,
        CRASHES: str(start.crashes),
    }
    if start.round:
        written[ROUND] = start.round
    if pod.metadata.deletion_grace_period_seconds is not None:
        written[DELETION_GRACE_PERIOD] = str(pod.metadata.deletion_grace_period_seconds)
    if pod.spec.termination_grace_period_seconds is not None:
        written[TERMINATION_GRACE_PERIOD] = str(pod.spec.termination_grace_period_seconds)
    if container.lifecycle and container.lifecycle.pre_stop:
        written[PRE_STOP_HANDLER] = encode(container.lifecycle.pre_stop).decode()
    if container.lifecycle and container.lifecycle.stop_signal:
        written[STOP_SIGNAL] = container.lifecycle.stop_signal
    if (told := resources_to_actuate(pod, container)) and (told.requests or told.limits):
        written[RESOURCES] = encode(told).decode()
    if container.ports:
        written[PORTS] = encode(container.ports).decode()
    return written


def restored(status: pb.ContainerStatus, type_: type[C]) -> C:
    """The container as far as stopping it needs: name, ports (which hooks may name), preStop, stop signal."""
    written = status.annotations
    handler, ports = written.get(PRE_STOP_HANDLER), written.get(PORTS)
    lifecycle = Lifecycle(
        pre_stop=decode(handler.encode(), LifecycleHandler) if handler else None,
        stop_signal=written.get(STOP_SIGNAL),
    )
    name = status.labels.get(CONTAINER_NAME) or status.metadata.name
    ports_of = decode(ports.encode(), list[ContainerPort]) if ports else []
    return type_(name=name, ports=ports_of, lifecycle=lifecycle)


def annotated_resources(annotations: dict[str, str]) -> ResourceRequirements:
    """The resources that the container was created with, from its annotations."""
    written = annotations.get(RESOURCES)
    return decode(written.encode(), ResourceRequirements) if written else ResourceRequirements()


def number(values: dict[str, str], key: str) -> int:
    """A number among labels or annotations; 0 when it is absent or not a number."""
    text = values.get(key, "")
    return int(text) if text.isdecimal() else 0


def linux_resources(
    pod: Pod, container: EphemeralContainerCommon, kind: ContainerType, node: NodeFacts
) -> pb.LinuxContainerResources:
    """The CRI's resources of one container. A limit that it does not set is the pod's, if that has one."""
    requests, limits = container.resources.requests, container.resources.limits
    memory = _limit(pod, limits, "memory").value()
    # 0 for the node's page sizes that the container does not request.
    allowed = dict.fromkeys(node.page_sizes, 0) | huge_pages(limits)
    return pb.LinuxContainerResources(
        cpu_shares=cpu_shares((requests.get("cpu") or limits.get("cpu") or _ZERO).milli_value()),
        cpu_period=CPU_PERIOD,
        cpu_quota=cpu_quota(_limit(pod, limits, "cpu").milli_value()),
        memory_limit_in_bytes=memory,
        # The limit of memory and swap together; equal to the memory limit, it leaves no swap.
        memory_swap_limit_in_bytes=memory if node.swap_is_limited else 0,
        hugepage_limits=[
            pb.HugepageLimit(page_size=page_size(size), limit=limit) for size, limit in allowed.items()
        ],
        oom_score_adj=oom_score_adj(pod, container, kind, node.memory_bytes),
        unified=node.cgroup2_settings,
    )


def sandbox_resources(pod: Pod) -> pb.LinuxContainerResources:
    """The pod's resources without its overhead, for runtimes that size a virtual machine by them."""
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


def oom_score_adj(
    pod: Pod, container: EphemeralContainerCommon, kind: ContainerType, node_memory: int
) -> int:
    """Kubernetes' score for the OOM killer: -997 for Guaranteed and node-critical pods, 1000 for BestEffort,
    and for Burstable the less the more memory is requested."""
    quality = qos_class(pod)
    if quality == GUARANTEED or is_node_critical(pod):
        return PROTECTED
    if quality == BEST_EFFORT or not node_memory:
        return FIRST_TO_GO
    share = 0
    if asked := pod.spec.resources and pod.spec.resources.requests.get("memory"):
        # What the pod requests beyond its containers' requests counts as shared evenly among these.
        of_containers = replace(pod, spec=replace(pod.spec, resources=None, overhead={}))
        rest = asked.value() - pod_requests(of_containers).get("memory", _ZERO).value()
        share = rest // len(pod.spec.containers)
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


def _without_overhead(pod: Pod) -> Pod:
    if not pod.spec.overhead:
        return pod
    return replace(pod, spec=replace(pod.spec, overhead={}))


class ContainerInputs(msgspec.Struct, frozen=True):
    """What was fetched and prepared for one start."""

    image: str
    """The runtime's id of the image."""
    image_user: ImageUser = UNSPECIFIED
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    mounts: Sequence[pb.Mount] = ()
    """All of them, with /etc/hosts and the termination message file."""
    users: pb.UserNamespace = msgspec.field(default_factory=lambda: NODES_USERS)
    """The user namespace of the sandbox."""
    devices: Sequence[pb.Device] = ()


def container_config(
    pod: Pod,
    container: EphemeralContainerCommon,
    start: StartContainer,
    inputs: ContainerInputs,
    node: NodeFacts,
) -> pb.ContainerConfig:
    """Raises ConfigError for a container that must not run as root and would."""
    values, mounts = inputs.environment, list(inputs.mounts)
    if inputs.users.uids:
        # Idmapped: files have the same owners inside the pod as on the node.
        mounts = []
        for mount in inputs.mounts:
            mapped = pb.Mount(uidMappings=inputs.users.uids, gidMappings=inputs.users.gids)
            mapped.MergeFrom(mount)
            mounts.append(mapped)
    return pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name=container.name, attempt=start.attempt),
        image=pb.ImageSpec(image=inputs.image, user_specified_image=container.image),
        command=[expand(word, values) for word in container.command],
        args=[expand(word, values) for word in container.args],
        working_dir=container.working_dir,
        envs=[pb.KeyValue(key=name, value=value) for name, value in values.items()],
        mounts=mounts,
        devices=inputs.devices,
        labels=container_labels(pod, container.name, start.type),
        annotations=container_annotations(pod, container, start),
        log_path=log_path(container.name, start.attempt),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        stop_signal=stop_signal(container),
        linux=pb.LinuxContainerConfig(
            resources=linux_resources(pod, container, start.type, node),
            security_context=container_security(
                pod, container, inputs.image_user, inputs.users, start.target_id, node.seccomp_dir
            ),
        ),
    )


def stop_signal(container: EphemeralContainerCommon) -> str:
    """In CRI's spelling; RUNTIME_DEFAULT stands for the image's."""
    name = container.lifecycle.stop_signal if container.lifecycle else None
    return name.replace("+", "PLUS").replace("-", "MINUS") if name else "RUNTIME_DEFAULT"
