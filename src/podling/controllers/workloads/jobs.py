"""Jobs: pods that run to their end, until as many have succeeded as shall.

What is needed next is planned in `job_state.py`, what the status says in `job_tracking.py`; this reads and
writes. A key waits until its informers show all that it did, and before pods are made the server is asked
whether the Job is still as the informer has it: no index runs again that has succeeded, whenever a controller
before this one ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Deleted, Key, gone_is_done, own_key
from podling.controllers.endpoints import is_ready
from podling.controllers.workloads.claims import Claims, Owned, controller_of, of_owned
from podling.controllers.workloads.job_pods import pod_of, without_finalizer
from podling.controllers.workloads.job_policies import Failures
from podling.controllers.workloads.job_state import (
    Make,
    Remove,
    State,
    Wait,
    deadline_in,
    is_complete,
    look,
    next_step,
)
from podling.controllers.workloads.job_tracking import (
    Done,
    counted,
    decided_complete,
    finished,
    suspended,
    track,
)
from podling.controllers.workloads.pods import PodWriter, in_ending_namespace, slowly
from podling.model.errors import StatusError
from podling.model.rules.jobs import COMPLETE, TRACKING, is_finished, is_managed_elsewhere, is_tracked
from podling.model.rules.status import is_terminal
from podling.model.selectors import Selector, from_label_selector
from podling.model.time import Clock, rfc3339
from podling.model.types.batch import Job, JobCondition, JobStatus
from podling.model.types.pod import Pod

COMPONENT = "job-controller"

T = TypeVar("T")


class Jobs:
    name = "job"

    def __init__(
        self, client: Client, jobs: Informer[Job], pods: Informer[Pod], events: EventRecorder, clock: Clock
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock = client, clock
        self._events = events.by(COMPONENT)
        self._jobs = jobs
        self._owned = Owned(pods, unsettled)
        self._claims = Claims[Pod](client, TRACKING)
        self._pods = PodWriter(client, self._events)
        self._created, self._deleted = Created(pods), Deleted(pods)
        self._released = Deleted(pods, lambda meta: TRACKING not in meta.finalizers)
        self._failures: dict[str, Failures] = {}
        """By the uid of the Job."""
        jobs.subscribe(own_key(self.queue))
        jobs.subscribe(self._forget)
        pods.subscribe(of_owned(self.queue, jobs, _selector))

    async def reconcile(self, key: Key) -> None:
        if any(waiting.is_behind(key) for waiting in (self._created, self._deleted, self._released)):
            self.queue.add_after(key, LAG)
            return
        job = self._jobs.get(*key)
        if job is None or is_finished(job) or is_managed_elsewhere(job):
            return
        pods = await self._claims.settle(job, _selector(job), self._owned.candidates(job))
        begun, now = job, self._clock.now()
        if not job.status.start_time and not job.spec.suspend:
            begun = replace(job, status=replace(job.status, start_time=rfc3339(now)))
        state = look(begun, pods, self._failures.get(job.metadata.uid, Failures()), now)
        if state.verdict is None and (seconds := deadline_in(begun, now)) is not None:
            self.queue.add_after(key, seconds)
        failed, done = await self._act(key, begun, pods, state)
        await self._tell(key, job, begun, pods, state, done)
        if failed:
            raise failed

    async def _act(
        self, key: Key, job: Job, pods: Sequence[Pod], state: State
    ) -> tuple[StatusError | None, Done]:
        """What went wrong, and what stands then."""
        going: Sequence[Pod] = []
        gone: list[Pod] = []
        made: list[Pod] = []
        failed: StatusError | None = None
        is_managed = state.verdict is None and not job.metadata.deletion_timestamp
        try:
            if state.verdict is not None:
                going = state.active
                await self._remove(key, job, going, gone, counts=True)
            elif is_managed:
                step = next_step(job, pods, state, self._clock.now())
                if isinstance(step, Remove):
                    going = step.pods
                    await self._remove(key, job, going, gone, counts=False)
                elif isinstance(step, Wait):
                    self.queue.add_after(key, step.seconds)
                elif step.indexes:
                    await self._make(key, job, state, step, made)
        except StatusError as error:
            failed = error
        active = len(state.active) - len(gone) + len(made)
        verdict = state.verdict
        if verdict is not None and len(gone) < len(going):
            verdict = None
        elif verdict is None and is_complete(job, state.succeeded, active):
            verdict = decided_complete(self._clock.now())
        return failed, Done(
            active=active,
            ready=state.ready - sum(map(is_ready, gone)),
            terminating=state.terminating + len(gone),
            verdict=verdict,
            was_managed=is_managed and verdict is None,
        )

    async def _make(self, key: Key, job: Job, state: State, step: Make, made: list[Pod]) -> None:
        meta = job.metadata
        fresh = await self._client.get(Job, meta.name, meta.namespace)
        if fresh.metadata.resource_version != meta.resource_version:
            raise StatusError(409, "Conflict", "the Job has changed meanwhile")

        async def make(index: int | None) -> None:
            try:
                pod = await self._pods.create(job, pod_of(job, index, state.waiting))
            except StatusError as error:
                if not in_ending_namespace(error):
                    raise
                return
            self._created.add(key, pod)
            made.append(pod)

        await each_slowly(step.indexes, make)

    async def _remove(
        self, key: Key, job: Job, pods: Sequence[Pod], gone: list[Pod], *, counts: bool
    ) -> None:
        """`counts`: whether their end is counted, for which they keep the finalizer."""

        async def remove(pod: Pod) -> None:
            if not counts:
                await self._release(key, pod)
            await self._pods.delete(job, pod)
            self._deleted.add(key, pod)
            gone.append(pod)

        await each_slowly(pods, remove)

    async def _release(self, key: Key, pod: Pod) -> None:
        if is_tracked(pod):
            await without_finalizer(self._client, pod)
            self._released.add(key, pod)

    async def _tell(
        self, key: Key, job: Job, begun: Job, pods: Sequence[Pod], state: State, done: Done
    ) -> None:
        """Write the status, release what it has counted, and write what is counted then."""
        status = suspended(begun, self._clock.now()) if done.was_managed else begun.status
        is_resumed_or_suspended = status.conditions != begun.status.conditions
        tracking = track(replace(begun, status=status), pods, state, done, self._clock.now())
        with gone_is_done():
            job = await self._put_status(job, tracking.status)
            self._failures[job.metadata.uid] = state.failures
            if is_resumed_or_suspended:
                word = "suspended" if job.spec.suspend else "resumed"
                self._events.normal(job, word.capitalize(), f"Job {word}")
            left = {pod.metadata.uid for pod in pods if is_tracked(pod)}

            async def release(pod: Pod) -> None:
                await self._release(key, pod)
                left.discard(pod.metadata.uid)

            try:
                await each_slowly(tracking.released, release)
            finally:
                status = counted(tracking.status, left)
                end = finished(status, tracking.end)
                job = await self._put_status(job, end or status)
            if end is not None and tracking.end is not None:
                tell_end(self._events, job, tracking.end)

    async def _put_status(self, job: Job, status: JobStatus) -> Job:
        if status == job.status:
            return job
        return await self._client.update(replace(job, status=status), subresource="status")

    def _forget(self, old: Job | None, new: Job | None) -> None:
        is_over = new is None or is_finished(new) or (old and old.metadata.uid != new.metadata.uid)
        if is_over and old is not None:
            self._failures.pop(old.metadata.uid, None)


def tell_end(events: EventRecorder, job: Job, end: JobCondition) -> None:
    if end.type != COMPLETE:
        events.warning(job, end.reason, end.message)
        return
    wanted = job.spec.completions
    if wanted is not None and job.status.succeeded > wanted:
        said = "Too many succeeded pods running after completion count reached"
        events.warning(job, "TooManySucceededPods", said)
    events.normal(job, "Completed", "Job completed")


def unsettled(pod: Pod) -> bool:
    """Whether a pod still matters to the Job that has it: one that has ended and is counted does not."""
    return controller_of(pod.metadata) is None or not is_terminal(pod) or is_tracked(pod)


async def each_slowly(items: Sequence[T], act: Callable[[T], Awaitable[None]]) -> None:
    """As `slowly`, in their order."""
    left = iter(items)
    await slowly(len(items), lambda: act(next(left)))


def _selector(job: Job) -> Selector:
    return from_label_selector(job.spec.selector)
