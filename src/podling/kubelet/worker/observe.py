"""Reads sandboxes and containers of pods from the runtime, by their labels and annotations.

The runtime is first asked for lists and then for the status of each item, as only a status has addresses,
times and exit codes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import NOT_FOUND, Runtime, RuntimeFault
from podling.kubelet.cri_config.container import (
    CONTAINER_NAME,
    CONTAINER_TYPE,
    CRASHES,
    HASH,
    POD_NAME,
    POD_NAMESPACE,
    POD_UID,
    ROUND,
    annotated_resources,
    number,
)
from podling.kubelet.pod.containers import type_of_label
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedSandbox, from_nanoseconds
from podling.process.backoff import Backoff

T = TypeVar("T")

log = logging.getLogger(__name__)

AT_ONCE = 16
RETRY = Backoff(0.1, 5.0)

_STATES = {
    pb.CONTAINER_CREATED: ContainerState.CREATED,
    pb.CONTAINER_RUNNING: ContainerState.RUNNING,
    pb.CONTAINER_EXITED: ContainerState.EXITED,
}


class RuntimePod(msgspec.Struct):
    """What the runtime has of one pod. Names are from the labels of whatever was found first; `statuses` are
    the containers in the runtime's own words."""

    namespace: str
    name: str
    sandboxes: list[ObservedSandbox] = msgspec.field(default_factory=list)
    containers: list[ObservedContainer] = msgspec.field(default_factory=list)
    statuses: list[pb.ContainerStatus] = msgspec.field(default_factory=list)

    def ids(self) -> Iterator[str]:
        yield from (sandbox.id for sandbox in self.sandboxes)
        yield from (container.id for container in self.containers)


async def observe(runtime: Runtime, uid: str = "") -> dict[str, RuntimePod]:
    """All pods, or one, by uid. What disappears while it is being asked about is not there."""
    labels = {POD_UID: uid} if uid else None
    sandboxes, containers = await asyncio.gather(
        runtime.list_pod_sandbox(labels), runtime.list_containers(labels)
    )
    pods: dict[str, RuntimePod] = {}
    limit = asyncio.Semaphore(AT_ONCE)
    found_sandboxes, found_containers = await asyncio.gather(
        asyncio.gather(*(_present(limit, runtime.pod_sandbox_status(s.id)) for s in _ours(sandboxes))),
        asyncio.gather(*(_present(limit, runtime.container_status(c.id)) for c in _ours(containers))),
    )
    owners = {container.id: container.pod_sandbox_id for container in containers}
    for sandbox in filter(None, found_sandboxes):
        _pod(pods, sandbox.labels).sandboxes.append(observed_sandbox(sandbox))
    for container in filter(None, found_containers):
        pod = _pod(pods, container.labels)
        pod.containers.append(observed_container(container, owners[container.id]))
        pod.statuses.append(container)
    return pods


async def observe_until_answered(runtime: Runtime, uid: str = "") -> dict[str, RuntimePod]:
    wait = RETRY.begin()
    while True:
        try:
            return await observe(runtime, uid)
        except RuntimeFault as fault:
            log.warning("the runtime cannot say what it runs: %s", fault)
        await asyncio.sleep(wait.next())


def observed_sandbox(status: pb.PodSandboxStatus) -> ObservedSandbox:
    network = status.network
    ips = (network.ip, *(more.ip for more in network.additional_ips))
    return ObservedSandbox(
        id=status.id,
        attempt=status.metadata.attempt,
        created_at=from_nanoseconds(status.created_at),
        ready=status.state == pb.SANDBOX_READY,
        ips=tuple(filter(None, ips)),
    )


def observed_container(status: pb.ContainerStatus, sandbox_id: str) -> ObservedContainer:
    annotations = dict(status.annotations)
    return ObservedContainer(
        id=status.id,
        name=status.labels.get(CONTAINER_NAME) or status.metadata.name,
        type=type_of_label(status.labels.get(CONTAINER_TYPE, "")),
        sandbox_id=sandbox_id,
        attempt=status.metadata.attempt,
        state=_STATES.get(status.state, ContainerState.UNKNOWN),
        created_at=from_nanoseconds(status.created_at),
        started_at=from_nanoseconds(status.started_at),
        finished_at=from_nanoseconds(status.finished_at),
        exit_code=status.exit_code,
        reason=status.reason,
        message=status.message,
        image=status.image.image,
        image_id=status.image_ref,
        hash=annotations.get(HASH, ""),
        crashes=number(annotations, CRASHES),
        round=annotations.get(ROUND, ""),
        user=_user(status),
        resources=annotated_resources(annotations),
        sealed_mounts=frozenset(m.container_path for m in status.mounts if m.recursive_read_only),
    )


def _user(status: pb.ContainerStatus) -> tuple[int, int, tuple[int, ...]] | None:
    if not status.user.HasField("linux"):
        return None
    user = status.user.linux
    return user.uid, user.gid, tuple(user.supplemental_groups)


_Listed = TypeVar("_Listed", pb.PodSandbox, pb.Container)


def _ours(listed: Iterable[_Listed]) -> list[_Listed]:
    """Pods of the kubelet; whatever else lives in the runtime is not its business."""
    return [item for item in listed if POD_UID in item.labels]


def _pod(pods: dict[str, RuntimePod], labels: Mapping[str, str]) -> RuntimePod:
    return pods.setdefault(
        labels[POD_UID], RuntimePod(labels.get(POD_NAMESPACE, ""), labels.get(POD_NAME, ""))
    )


async def _present(limit: asyncio.Semaphore, question: Awaitable[T]) -> T | None:
    async with limit:
        try:
            return await question
        except RuntimeFault as fault:
            if fault.code == NOT_FOUND:
                return None
            raise
