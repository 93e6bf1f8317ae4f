"""What the kubelet writes on sandboxes and containers, by which it knows them again (R-INIT-11, R-DBG-3).

Labels and annotations are upstream's names; five are podling's own: the container's type as a label, the
failures in a row that came before an instance (`backoff.py`), the round it was made in (`rounds.py`), the
resources it was made with, and its stop signal, which not every runtime keeps.
"""

from __future__ import annotations

from typing import TypeVar

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.container_types import ContainerType
from podling.kubelet.planning.resize import told_of
from podling.kubelet.planning.restart import definition_hash
from podling.kubelet.pod_actions import StartContainer
from podling.model.container import (
    ContainerPort,
    EphemeralContainerCommon,
    Lifecycle,
    LifecycleHandler,
    ResourceRequirements,
)
from podling.model.json import decode, encode
from podling.model.pod import Pod

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


def pod_labels(pod: Pod) -> dict[str, str]:
    meta = pod.metadata
    return {**meta.labels, POD_NAME: meta.name, POD_NAMESPACE: meta.namespace, POD_UID: meta.uid}


def container_labels(pod: Pod, name: str, kind: ContainerType) -> dict[str, str]:
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
    """Whatever a later kubelet needs to end this instance properly, should the pod's object be gone by
    then.
    """
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
    if (told := told_of(pod, container)) and (told.requests or told.limits):
        written[RESOURCES] = encode(told).decode()
    if container.ports:
        written[PORTS] = encode(container.ports).decode()
    return written


def restored(status: pb.ContainerStatus, type_: type[C]) -> C:
    """As much of a container as ending it takes: its name, its ports, and what it is told before."""
    written = status.annotations
    handler, ports = written.get(PRE_STOP_HANDLER), written.get(PORTS)
    lifecycle = Lifecycle(
        pre_stop=decode(handler.encode(), LifecycleHandler) if handler else None,
        stop_signal=written.get(STOP_SIGNAL),
    )
    name = status.labels.get(CONTAINER_NAME) or status.metadata.name
    ports_of = decode(ports.encode(), list[ContainerPort]) if ports else []
    return type_(name=name, ports=ports_of, lifecycle=lifecycle)


def resources_told(annotations: dict[str, str]) -> ResourceRequirements:
    """What the runtime was told when it made the container."""
    written = annotations.get(RESOURCES)
    return decode(written.encode(), ResourceRequirements) if written else ResourceRequirements()


def number(values: dict[str, str], key: str) -> int:
    """A number among labels or annotations; 0 when it is absent or not a number."""
    text = values.get(key, "")
    return int(text) if text.isdecimal() else 0
