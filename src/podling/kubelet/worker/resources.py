"""The resources of one pod: what is allocated to it, and actuating that in the runtime and the pod's cgroup.

The spec says what the pod wants. What it was allocated is written to its directory, so that a spec that was
changed while no kubelet ran is a resize to be judged, and not a fact (R-INIT-11). All other parts of the
kubelet see the pod with its allocated resources.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from podling.cri.interface import RuntimeFault
from podling.kubelet.cri_config.container import linux_resources
from podling.kubelet.host.cgroups import CgroupLimits, limits_of_pod, on_node
from podling.kubelet.plan.resize import (
    Allocation,
    ResizeAnswer,
    allocation_of,
    limits_meanwhile,
    resources_to_actuate,
    restart_required,
    unactuated,
    whole,
    with_allocation,
)
from podling.kubelet.pod.containers import all_containers, rpc_text
from podling.kubelet.pod.directories import replace_file
from podling.kubelet.pod.observed import PendingResize
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.observe import PodRecord
from podling.model.codec.fields import Part
from podling.model.codec.json import decode, encode
from podling.model.errors import StatusError
from podling.model.types.container import ResourceRequirements
from podling.model.types.pod import Pod

log = logging.getLogger(__name__)

FILE = "resources"
"""In the pod's directory."""
GATE = "InPlacePodVerticalScaling"


class ResizeError(Exception):
    """A resize cannot be actuated now. The message is the condition's (PodResizeInProgress)."""


class PodResize:
    """Actuates the resources of one pod: writes its cgroup and updates its containers in the runtime."""

    def __init__(self, node: NodeContext, record: PodRecord) -> None:
        self._node = node
        self._record = record

    def make(self, pod: Pod) -> None:
        """Make the cgroup of a pod, before its sandbox. Raises OSError."""
        self._node.cgroups.weigh(pod)
        self._write(pod, limits_of_pod(pod))
        self._record.limits_settled = True
        self._record.actuated = whole(pod)

    async def apply(self, pod: Pod) -> None:
        """One step of a resize: first the cgroup is allowed the higher of old and new limits, then the
        containers are updated, so that no container is ever allowed more than its pod. A cgroup that has to
        shrink afterwards is the next step's."""
        try:
            self._node.cgroups.weigh(pod)
            self._write(pod, limits_meanwhile(pod, self._record.observed()))
            for container, running in list(unactuated(pod, self._record.observed())):
                if restart_required(pod, container, running):
                    continue
                given = resources_to_actuate(pod, container)
                before, asked = running.resources.limits.get("memory"), given.limits.get("memory")
                if asked and _falls(before.value() if before else None, asked.value()):
                    usage = self._node.cgroups.memory_usage(pod, running.id)
                    self._refuse_to_kill(f'container "{container.name}"', asked.value(), usage)
                kind = next(kind for kind, found in all_containers(pod) if found.name == container.name)
                resources = linux_resources(pod, container, kind, self._node.facts)
                await self._node.runtime.update_container_resources(running.id, resources)
                self._record.set_actuated(running.id, given)
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

    @staticmethod
    def _refuse_to_kill(whose: str, limit: int, usage: int) -> None:
        """Raises ResizeError: a kernel whose limit falls below the usage kills processes."""
        if usage > limit:
            raise ResizeError(
                f"attempting to set {whose} memory limit ({limit}) below current usage ({usage})"
            )

    def _failed(self, message: str) -> None:
        log.warning("resources of a pod cannot be changed: %s", message)
        self._record.resize_failed("Error", message, self._node.clock.now())


def _falls(before: int | None, after: int | None) -> bool:
    return after is not None and (before is None or after < before)


class WrittenAllocation(Part):
    """The content of the file `resources` in the pod's directory."""

    given: dict[str, ResourceRequirements] = {}
    """The allocated resources by container name."""
    whole: ResourceRequirements | None = None
    """The allocated `spec.resources` of the pod."""
    actuated: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict, name="told")
    """By container id: the resources that the runtime was given after it had created the container."""


class PodAllocation:
    """What is allocated to one pod. `pod` is the newest object with its allocated resources; `changed` is
    called when a deferred resize is answered."""

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
        for container_id, resources in self._written.actuated.items():
            record.set_actuated(container_id, resources)
        self.pod = self._seen()

    def admitted(self) -> None:
        """The node has admitted the pod: it is allocated what its spec asks for."""
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
        """Write the allocation to the pod's directory, unless the pod asks for nothing or it is there."""
        given = self._given.containers
        written = WrittenAllocation(
            given=dict(given), whole=self._given.whole, actuated=dict(self._record.actuated_resources())
        )
        plain = self._given.whole is None and not any(r.requests or r.limits for r in given.values())
        if plain or written == self._written:
            return
        try:
            replace_file(self._file, encode(written))
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
        """The newest object with its allocated resources; as it is while nothing is allocated yet."""
        return with_allocation(self._object, self._given) if self._given.containers else self._object


def read(file: Path) -> WrittenAllocation:
    """What an earlier kubelet wrote; empty when there is nothing that can be read."""
    try:
        return decode(file.read_bytes(), WrittenAllocation)
    except FileNotFoundError:
        return WrittenAllocation()
    except (OSError, StatusError) as error:
        log.warning("%s cannot be read: %s", file, error)
        return WrittenAllocation()
