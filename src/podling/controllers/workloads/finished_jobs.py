"""Finished Jobs are deleted when their `ttlSecondsAfterFinished` are over."""

from __future__ import annotations

from datetime import datetime, timedelta

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.model.rules.jobs import end_of
from podling.model.time import Clock, parse_time
from podling.model.types.batch import Job


class FinishedJobs:
    name = "ttl-after-finished"

    def __init__(self, client: Client, jobs: Informer[Job], clock: Clock) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._jobs, self._clock = client, jobs, clock
        jobs.subscribe(self._job_changed)

    async def reconcile(self, key: Key) -> None:
        job = self._jobs.get(*key)
        seconds = left(job, self._clock.now()) if job is not None else None
        if job is None or seconds is None:
            return
        if seconds > 0:
            self.queue.add_after(key, seconds)
            return
        meta = job.metadata
        with gone_is_done():
            # Not if it has changed meanwhile: it may have been given more time.
            await self._client.delete(
                Job,
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                propagation="Foreground",
            )

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        if new is not None and left(new, self._clock.now()) is not None:
            self.queue.add((new.metadata.namespace, new.metadata.name))


def left(job: Job, now: datetime) -> float | None:
    """Seconds until a Job is to be deleted; None for one that is not."""
    seconds, end = job.spec.ttl_seconds_after_finished, end_of(job)
    if seconds is None or end is None or not end.last_transition_time or job.metadata.deletion_timestamp:
        return None
    return (parse_time(end.last_transition_time) + timedelta(seconds=seconds) - now).total_seconds()
