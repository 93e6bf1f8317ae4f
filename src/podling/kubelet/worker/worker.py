"""One pod's worker: observe, plan, apply, for as long as the pod is on this node.

    spec change ──┐
    runtime event ┤          ┌─▶ actions, each a task of the worker ───────┐
    probe result ─┤                                                        │
    timer ────────┼▶ wake ▶ plan (pure)                                    │
    action done ──┘          └─▶ status ─▶ writer (newest wins)            │
         ▲                                                                 │
         └───────────────── their results: PodRecord ◀─────────────────────┘

The loop waits for nothing but the next wake-up, so a slow pull or a stopping container does not hold up the
rest of the pod. All decisions follow from the runtime, the pod's status and its directory, so a worker that
is lost with its process loses nothing (R-INIT-11).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from podling.cri.interface import EventKind, RuntimeEvent, RuntimeFault
from podling.kubelet.plan.admission import Refusal, is_static
from podling.kubelet.plan.ending import FAILED, LEAST_OF_DELETED, Ending, grace_period
from podling.kubelet.plan.plan import plan, plan_stop
from podling.kubelet.pod.actions import Action, Finish, RemoveContainer, ResizePod
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.pod.directories import PodDirectory, termination_message
from podling.kubelet.pod.host import ClaimedUse
from podling.kubelet.pod.lifecycle import PodLife, PodState
from podling.kubelet.pod.observed import ObservedPod, Termination
from podling.kubelet.probes.pod_probes import PodProbes
from podling.kubelet.status.conditions import with_foreign_conditions
from podling.kubelet.status.container_status import status_changes_at
from podling.kubelet.status.pod_status import pod_status, status_events
from podling.kubelet.status.writer import StatusWriter, may_coalesce
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.pod_volumes import PodVolumes
from podling.kubelet.worker.context import NodeContext
from podling.kubelet.worker.executor import PodActions
from podling.kubelet.worker.observe import PodRecord, RuntimePod
from podling.kubelet.worker.resources import PodAllocation
from podling.model.errors import StatusError
from podling.model.rules.resources import with_volume_containers
from podling.model.rules.status import TERMINAL
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodStatus
from podling.process.waits import Backoff, woken

RUNNING = "Running"
RETRY = Backoff(0.1, 30.0)

log = logging.getLogger(__name__)


def changed_images(old: Pod, new: Pod) -> set[str]:
    """The containers that are gone, or whose image is another now."""
    now = {container.name: container.image for _, container in all_containers(new)}
    return {
        container.name for _, container in all_containers(old) if now.get(container.name) != container.image
    }


def is_echo(old: Pod, new: Pod) -> bool:
    """Whether the new object says nothing that the old one did not, status apart: most news of a pod is what
    its kubelet wrote."""
    known, told = old.metadata, new.metadata
    if known.resource_version != told.resource_version:
        known = replace(known, resource_version=told.resource_version, managed_fields=told.managed_fields)
    return known == told and old.spec == new.spec


def container_names(pod: Pod) -> frozenset[str]:
    return frozenset(container.name for _, container in all_containers(pod))


def without_instance(status: PodStatus, container_id: str) -> PodStatus:
    """An ephemeral container that was let go leaves its name to the next entry, which has yet to start
    (R-EPH-11).
    """
    shown = status.ephemeral_container_statuses
    kept = [c for c in shown if c.container_id.rpartition("/")[2] != container_id]
    return status if len(kept) == len(shown) else replace(status, ephemeral_container_statuses=kept)


class PodWorker:
    """The worker of one pod. `run()` returns when nothing of the pod is left on the node. The other methods
    only record what happened and wake it. `claim` is called with every runtime id that belongs to the pod."""

    def __init__(self, node: NodeContext, pod: Pod, claim: Callable[[str], None]) -> None:
        pod = with_volume_containers(pod)
        self.record = PodRecord()
        self.record.started_at = node.clock.now()
        self._node = node
        self._claim = claim
        self._status = pod.status
        self._life = PodLife()
        self._directory = PodDirectory.of(pod, node.config)
        self._volumes = PodVolumes(self._directory, node, self.record)
        self._probes = PodProbes(node, self._wake_up)
        self._changed = asyncio.Event()
        self._actions = PodActions(
            node, self.record, self._directory, self._volumes, claim, self._changed.set
        )
        self._writer = StatusWriter(node.client, None if is_static(pod) else pod)
        self._ending = PodEnding(node, self._directory, self._volumes, self._writer)
        self._allocation = PodAllocation(node, pod, self.record, self._directory.path, self._wake_up)
        self._wake = asyncio.Event()

    # What may happen to a pod

    def update(self, pod: Pod) -> None:
        """The API has a newer object of this pod."""
        pod = with_volume_containers(pod)
        status = with_foreign_conditions(self._status, pod.status)
        echo = is_echo(self.pod, pod) and status == self._status
        for name in changed_images(self.pod, pod):
            # Whatever kept the old image from starting says nothing about the new one.
            self.record.succeeded(name)
            self._actions.give_up_image(name)
        unwanted = self.record.unwanted | container_names(self.pod)
        self.record.unwanted = unwanted - container_names(pod)
        self._allocation.update(pod)
        self._writer.learn(pod)
        if not echo:
            self._status = status
            self._wake.set()

    def mirrored(self, mirror: Pod | None) -> None:
        """The API shows this static pod by `mirror` now, or not at all."""
        if mirror is None:
            self._writer.lose()
            return
        self._status = with_foreign_conditions(self._status, mirror.status)
        self._writer.learn(mirror)

    def admitted(self) -> None:
        """The node has taken the pod."""
        self._allocation.admitted()

    def refused(self, why: Refusal) -> None:
        """The node has not: the pod fails without having begun."""
        self._node.events.warning(self.pod, why.reason, why.message)
        self.terminate(Termination(why.reason, f"Pod was rejected: {why.message}", FAILED))

    def removed(self) -> None:
        """The API no longer has the pod: whatever is left of it must go, and nobody waits for it."""
        self.terminate(Termination(grace_seconds=LEAST_OF_DELETED))

    def terminate(self, why: Termination) -> None:
        self.record.termination = why
        self._wake.set()

    async def clear(self) -> None:
        """Remove all dead containers and sandboxes of the pod, if its phase is terminal; returns when they
        are gone."""
        if self._status.phase in TERMINAL:
            self.record.cleared = True
            self._wake.set()
            await self._until(lambda: not (self.observed.containers or self.observed.sandboxes))

    def replace(self, found: RuntimePod, since: int) -> None:
        """What the runtime has of this pod, all of it; asked for when the record's `mark()` was `since`."""
        for id_ in found.ids():
            self._claim(id_)
        self.record.replace_all(found.sandboxes, found.containers, since)
        for container in found.containers:
            self._read_message(container.id)
        self._wake.set()

    def runtime_event(self, event: RuntimeEvent) -> None:
        if event.kind is EventKind.OOM:
            # cgroup v1 tells everyone in a pod that has reached its limit; only the victim's own cgroup
            # counts a kill.
            was_spared = self._node.cgroups.oom_kills(self.pod, event.container_id) == 0
            record = self.record.spared if was_spared else self.record.out_of_memory
            if record(event.container_id):
                self._wake.set()
        elif event.kind is EventKind.EXITED and self.record.exited(
            event.container_id, event.exit_code, event.finished_at, self._node.clock.now()
        ):
            self._read_message(event.container_id)
            self._wake.set()

    # What others may ask about it

    @property
    def pod(self) -> Pod:
        """The newest object, with the resources it was given."""
        return self._allocation.pod

    @property
    def asks_for_room(self) -> bool:
        """Whether the pod is to run."""
        return self.record.termination is None and self._status.phase not in TERMINAL

    @property
    def observed(self) -> ObservedPod:
        return replace(self.record.observed(), state=self._life.state, probes=self._probes.results())

    @property
    def pod_with_status(self) -> Pod:
        """The object with the newest status the kubelet knows, whether or not it has been written."""
        return replace(self.pod, status=self._status)

    async def container_ended(self, container_id: str) -> None:
        """Returns once that container does not run; at once if it is not known."""
        await self._until(lambda: not self._lives(container_id))

    async def volume_uses(self) -> Sequence[ClaimedUse]:
        return await self._volumes.uses()

    async def container_stopping(self, container_id: str) -> None:
        """Returns once the stop of that container has begun, or it does not run."""
        stopping = self.record.stopping
        await self._until(lambda: container_id in stopping or not self._lives(container_id))

    async def sandbox_ended(self, sandbox_id: str) -> None:
        """Returns once that sandbox is of no use any more; at once if it is not known."""
        await self._until(lambda: (found := self.record.sandbox(sandbox_id)) is None or not found.usable)

    def _lives(self, container_id: str) -> bool:
        container = self.record.container(container_id)
        return container is not None and not container.exited

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    # Its life

    async def run(self) -> None:
        """Sync the pod at each wake-up until it is finished, and write its status."""
        if not self._directory.create():
            self.record.initialized = self._directory.initialized_sandboxes()
        async with asyncio.TaskGroup() as outer:
            writer = outer.create_task(self._writer.run())
            async with asyncio.TaskGroup() as tasks:
                while self._life.state is not PodState.FINISHED:
                    self._wake.clear()
                    if at := self._sync(tasks):
                        await woken(self._wake, max((at - self._node.clock.now()).total_seconds(), 0))
                    else:
                        await self._wake.wait()
                    # One that has been woken meanwhile finds nothing to wait for above.
                    await asyncio.sleep(0)
            writer.cancel()
        self._node.pod_counts.forget(self.pod.metadata.uid)

    async def stop(self, grace_seconds: int) -> None:
        """End what runs of the pod, because the node stops, once `run()` was cancelled. Returns when nothing
        runs any more; dead containers and sandboxes stay, and the API is told nothing."""
        grace = min(grace_seconds, grace_period(self.pod))
        due = self._node.clock.now() + timedelta(seconds=grace)
        end = Ending(grace_seconds=grace, due=due)
        async with asyncio.TaskGroup() as tasks:
            state = PodState.TERMINATING
            while state is not PodState.TERMINATED:
                self._wake.clear()
                stop = plan_stop(self.pod, self.observed, self._node.clock.now(), end)
                for action in stop.actions:
                    self.record.in_flight.add(action)
                    tasks.create_task(self._apply(action))
                state = stop.state
                if stop.actions or self.record.in_flight:
                    await self._wake.wait()

    def _sync(self, tasks: asyncio.TaskGroup) -> datetime | None:
        """Observe, plan, start the actions, publish the status. Returns when to sync again at the latest."""
        now = self._node.clock.now()
        self._changed.set()
        pod = self.pod_with_status
        self._probes.learn(pod, self.record.observed())
        observed = self.observed
        decided = plan(pod, observed, now, self._node.config.gates)
        self._life.move(decided.state)
        if decided.state is PodState.SYNCING:
            self._volumes.begin(self.pod, tasks, self._wake.set)
        else:
            self._volumes.give_up()
            self._actions.give_up_starts()
        if decided.state is PodState.TERMINATED:
            self._ending.begin(self.pod, tasks)
            self._allocation.release()
        for action in decided.actions:
            self.record.in_flight.add(action)
            tasks.create_task(self._apply(action))
        ending = decided.state is not PodState.SYNCING
        if decided.actions or ending:
            observed = self.observed
        self._probes.follow(pod, observed, tasks, ending=ending)
        status = pod_status(pod, observed, now, self._node.facts.ips)
        if status.phase in TERMINAL:
            # Before it is said: the scheduler gives the room away as soon as it hears of it.
            self._allocation.release()
        self._publish(pod, status)
        return min(filter(None, (decided.wake_at, status_changes_at(pod, observed, now))), default=None)

    async def _apply(self, action: Action) -> None:
        try:
            if isinstance(action, Finish):
                await self._ending.finish(self.pod.metadata.uid)
                self._life.move(PodState.FINISHED)
            else:
                await self._actions.apply(self.pod, action)
                if isinstance(action, ResizePod):
                    self._allocation.save()
                elif isinstance(action, RemoveContainer) and not self.record.cleared:
                    self._publish(self.pod, without_instance(self._status, action.id))
        finally:
            self.record.in_flight.discard(action)
            self._wake.set()

    def _publish(self, pod: Pod, status: PodStatus) -> None:
        if status == self._status:
            return
        for event in status_events(pod, self._status, status, self._node.config.gates):
            say = self._node.events.warning if event.warning else self._node.events.normal
            say(pod, event.reason, event.message, field_path=event.field_path)
        if status.phase == RUNNING and self._status.phase != RUNNING and self.record.started_at:
            took = self._node.clock.now() - self.record.started_at
            self._node.pod_counts.start_seconds.observe(took.total_seconds())
        may_wait = may_coalesce(self._status, status, self.record.in_flight)
        self._status = status
        self._writer.publish(status, may_wait=may_wait)

    def _read_message(self, container_id: str) -> None:
        container = self.record.container(container_id)
        if container is None or not container.exited:
            return
        if message := termination_message(self.pod, container, self._directory):
            self.record.message(container_id, message)

    def _wake_up(self) -> None:
        self._wake.set()


class PodEnding:
    """What happens to a pod outside the runtime when nothing of it runs any more. First its last status is
    written, then volumes and cgroup are removed, then the API object is deleted if it is marked for deletion;
    meanwhile the sandbox is removed. After a crash in between, what the API does not know any more is an
    orphan and is cleaned up (`orphans.py`). `begin` may be called again and again; each part is done once."""

    def __init__(
        self, node: NodeContext, directory: PodDirectory, volumes: PodVolumes, writer: StatusWriter
    ) -> None:
        self._node = node
        self._directory = directory
        self._volumes = volumes
        self._writer = writer
        self._given_back: asyncio.Task[None] | None = None
        self._let_go = False

    def begin(self, pod: Pod, tasks: asyncio.TaskGroup) -> None:
        if self._given_back is None:
            self._given_back = tasks.create_task(self._give_back(pod))
        if pod.metadata.deletion_timestamp and not self._let_go:
            self._let_go = True
            tasks.create_task(self._delete(pod, self._given_back))

    async def finish(self, uid: str) -> None:
        """Wait until volumes are unmounted, then remove the files, logs and cgroup of a deleted pod whose
        containers and sandboxes are gone from the runtime."""
        if self._given_back is not None:
            await self._given_back
        await self._until_done(f"files of pod {uid}", lambda: asyncio.to_thread(self._directory.remove))
        await asyncio.to_thread(self._directory.remove_logs)
        if not self._node.cgroups.remove(uid):
            log.warning("cgroup of pod %s is still busy", uid)

    async def _give_back(self, pod: Pod) -> None:
        await self._until_done(f"volumes of pod {pod.metadata.uid}", self._volumes.tear_down)
        self._node.cgroups.remove(pod.metadata.uid)

    async def _delete(self, pod: Pod, given_back: asyncio.Task[None]) -> None:
        await given_back
        # Strictly after the last status: once the object is gone there is nowhere to write it.
        await self._writer.flushed()
        meta = pod.metadata
        wait = RETRY.begin()
        while True:
            try:
                await self._node.client.delete(Pod, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid)
                return
            except StatusError as error:
                if error.code in (404, 409):
                    return
                log.warning("pod %s/%s not deleted: %s", meta.namespace, meta.name, error.message)
            except OSError as error:
                log.warning("pod %s/%s not deleted: %s", meta.namespace, meta.name, error)
            await asyncio.sleep(wait.next())

    async def _until_done(self, what: str, step: Callable[[], Awaitable[None]]) -> None:
        wait = RETRY.begin()
        while True:
            try:
                await step()
                return
            except (OSError, RuntimeFault, VolumeError) as error:
                log.warning("%s not given back: %s", what, error)
            await asyncio.sleep(wait.next())
