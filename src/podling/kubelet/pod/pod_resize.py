"""Tells the runtime and the pod's cgroup what the pod may take now, in an order in which no container is ever
allowed more than its pod."""

from __future__ import annotations

import logging

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.cgroups.limits import CgroupLimits, limits_of_pod, on_node
from podling.kubelet.container_types import all_containers
from podling.kubelet.node.node_context import NodeContext
from podling.kubelet.observed import ObservedContainer
from podling.kubelet.planning.resize import limits_meanwhile, restart_required, told_of, unactuated, whole
from podling.kubelet.pod.faults import rpc_text
from podling.kubelet.pod.pod_record import PodRecord
from podling.kubelet.runtime_config.resources_config import linux_resources
from podling.model.container import Container
from podling.model.pod import Pod

log = logging.getLogger(__name__)


class ResizeError(Exception):
    """What was asked for cannot be done now."""


class PodResize:
    def __init__(self, node: NodeContext, record: PodRecord) -> None:
        self._node = node
        self._record = record

    def make(self, pod: Pod) -> None:
        """The cgroup of a pod that begins. Raises OSError."""
        self._node.cgroups.weigh(pod)
        self._write(pod, limits_of_pod(pod))
        self._record.limits_settled = True
        self._record.actuated = whole(pod)

    async def apply(self, pod: Pod) -> None:
        """One step: the cgroup takes what is needed meanwhile, then the containers what they are given. What
        remains to be taken back from the cgroup is the next step's."""
        try:
            self._node.cgroups.weigh(pod)
            self._write(pod, limits_meanwhile(pod, self._record.observed()))
            for container, running in list(unactuated(pod, self._record.observed())):
                if not restart_required(pod, container, running):
                    await self._update(pod, container, running)
        except RuntimeFault as fault:
            self._failed(rpc_text(fault))
        except (OSError, ResizeError) as error:
            self._failed(str(error))
        else:
            self._record.resize_failure = None
            settled = limits_of_pod(pod) == self._record.pod_limits
            self._record.limits_settled = settled and not any(unactuated(pod, self._record.observed()))
            if self._record.limits_settled:
                self._record.actuated = whole(pod)

    def _write(self, pod: Pod, limits: CgroupLimits) -> None:
        before = self._record.pod_limits
        if limits == before:
            return
        if before is not None and _falls(before.memory, limits.memory):
            self._refuse_to_kill("pod", limits.memory or 0, self._node.cgroups.memory_usage(pod))
        pids, page_sizes = self._node.config.pod_pids_limit, self._node.facts.page_sizes
        self._node.cgroups.write(pod, on_node(limits, pids, page_sizes))
        self._record.pod_limits = limits

    async def _update(self, pod: Pod, container: Container, running: ObservedContainer) -> None:
        resources = self._resources(pod, container)
        given = told_of(pod, container)
        told, asked = running.resources.limits.get("memory"), given.limits.get("memory")
        if asked and _falls(told.value() if told else None, asked.value()):
            usage = self._node.cgroups.memory_usage(pod, running.id)
            self._refuse_to_kill(f'container "{container.name}"', asked.value(), usage)
        await self._node.runtime.update_container_resources(running.id, resources)
        self._record.told(running.id, given)

    def _resources(self, pod: Pod, container: Container) -> pb.LinuxContainerResources:
        kind = next(kind for kind, found in all_containers(pod) if found.name == container.name)
        return linux_resources(pod, container, kind, self._node.facts)

    @staticmethod
    def _refuse_to_kill(whose: str, limit: int, usage: int) -> None:
        """A kernel told to allow less than is used kills for it."""
        if usage > limit:
            raise ResizeError(
                f"attempting to set {whose} memory limit ({limit}) below current usage ({usage})"
            )

    def _failed(self, message: str) -> None:
        log.warning("resources of a pod cannot be changed: %s", message)
        self._record.resize_failed("Error", message, self._node.clock.now())


def _falls(before: int | None, after: int | None) -> bool:
    return after is not None and (before is None or after < before)
