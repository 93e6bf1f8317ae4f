"""What one pod was given of the node, and what it asks for beyond that.

The spec says what the pod wants; what it was given is written down in its directory (R-INIT-11: a spec that
was changed while no kubelet ran is a resize, not a fact). All the rest of the kubelet sees the pod with what
it was given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from podling.kubelet.node.node_context import NodeContext
from podling.kubelet.observed import PendingResize
from podling.kubelet.planning.resize import Allocation, ResizeAnswer, allocation_of, with_allocation
from podling.kubelet.pod.pod_record import PodRecord
from podling.model.base import Part
from podling.model.container import ResourceRequirements
from podling.model.errors import StatusError
from podling.model.json import decode, encode
from podling.model.pod import Pod

FILE = "resources"
GATE = "InPlacePodVerticalScaling"

log = logging.getLogger(__name__)


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
