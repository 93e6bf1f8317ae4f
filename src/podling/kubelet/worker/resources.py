"""The resources of one pod: what is allocated to it, and actuating that in the runtime and the pod's cgroup.

The spec says what the pod wants. What it was allocated is written to its directory, so that a spec that was
changed while no kubelet ran is a resize to be judged, and not a fact (R-INIT-11). All other parts of the
kubelet see the pod with its allocated resources.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import RuntimeFault
from podling.kubelet.cri_config.container import linux_resources
from podling.kubelet.host.cgroup_limits import CgroupLimits, limits_of_pod, on_node
from podling.kubelet.plan.resize import (
    Allocation,
    ResizeAnswer,
    allocation_of,
    limits_meanwhile,
    restart_required,
    told_of,
    unactuated,
    whole,
    with_allocation,
)
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.pod.faults import rpc_text
from podling.kubelet.pod.observed import ObservedContainer, PendingResize
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.record import PodRecord
from podling.model.codec.fields import Part
from podling.model.codec.json import decode, encode
from podling.model.errors import StatusError
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod

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


FILE = "resources"
GATE = "InPlacePodVerticalScaling"


class WrittenShare(Part):
    """`given` by container name, `whole` for the pod; `told`: what the runtime was told after it made a
    container, by the container's id."""

    given: dict[str, ResourceRequirements] = {}
    whole: ResourceRequirements | None = None
    told: dict[str, ResourceRequirements] = {}


class PodShare:
    """`pod` is the newest object with the resources it was given; `changed` is called when those change by
    themselves."""

    def __init__(
        self, node: NodeContext, pod: Pod, record: PodRecord, directory: Path, changed: Callable[[], None]
    ) -> None:
        self._node = node
        self._record = record
        self._file = directory / FILE
        self._changed = changed
        self._object = pod
        self._written = read(self._file)
        self._given = Allocation(self._written.given, self._written.whole)
        for container_id, resources in self._written.told.items():
            record.told(container_id, resources)
        self.pod = self._seen()

    def admitted(self) -> None:
        """The node has taken the pod as `pod` is."""
        self._given = allocation_of(self.pod)
        self.save()
        self._ask()

    def update(self, pod: Pod) -> None:
        """The API has a newer object."""
        self._object = pod
        self._ask()
        self.pod = self._seen()

    def release(self) -> None:
        self._node.allocations.release(self._object.metadata.uid)

    def save(self) -> None:
        """Survives the end of the process; what the machine's end takes with it, it takes with the
        containers."""
        given = self._given.containers
        written = WrittenShare(given=dict(given), whole=self._given.whole, told=dict(self._record.resized()))
        plain = self._given.whole is None and not any(r.requests or r.limits for r in given.values())
        if plain or written == self._written:
            return
        try:
            write(self._file, written)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error)
        else:
            self._written = written

    def _ask(self) -> None:
        pod = self._object
        if not self._node.allocations.has(pod) or not self._node.config.gates.enabled(GATE):
            return
        if allocation_of(pod) == self._given:
            self._node.allocations.forget_resize(pod.metadata.uid)
            self._record.pending_resize = None
        else:
            self._node.allocations.resize(pod, self._node.clock.now(), self._answered)

    def _answered(self, answer: ResizeAnswer) -> None:
        record = self._record
        if answer.accepted:
            self._given = allocation_of(answer.pod)
            record.pending_resize = record.resize_failure = None
            record.resized_generation = answer.pod.metadata.generation
            record.limits_settled = False
            self.save()
        else:
            record.pending_resize = PendingResize(answer.reason, answer.message)
        self.pod = self._seen()
        self._changed()

    def _seen(self) -> Pod:
        """Before it was given anything a pod is as it wishes to be."""
        return with_allocation(self._object, self._given) if self._given.containers else self._object


def write(file: Path, share: WrittenShare) -> None:
    file.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_bytes(encode(share))
    fresh.rename(file)


def read(file: Path) -> WrittenShare:
    try:
        return decode(file.read_bytes(), WrittenShare)
    except FileNotFoundError:
        return WrittenShare()
    except (OSError, StatusError) as error:
        log.warning("%s cannot be read: %s", file, error)
        return WrittenShare()
