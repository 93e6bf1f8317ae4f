"""CronJobs: a Job each time that the schedule says, as many as history and concurrency allow.

The name of a Job says when it was due, so that none is made twice. `cron_times.py` has the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Key, gone_is_done
from podling.controllers.workloads.claims import Owned, controller_of, of_owner
from podling.controllers.workloads.cron_times import MANY, due, next_in, schedule_of
from podling.controllers.workloads.pods import in_ending_namespace
from podling.model.errors import StatusError
from podling.model.rules.jobs import COMPLETE, FAILED, end_of
from podling.model.rules.schedule import Schedule, names_zone, zone_fault
from podling.model.time import Clock, rfc3339
from podling.model.types.batch import CronJob, CronJobStatus, Job
from podling.model.types.meta import ObjectMeta, controller_reference
from podling.model.types.references import ObjectReference

COMPONENT = "cronjob-controller"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation of a Job."""
TOO_MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
NEVER = "9999"
"""Later than any time."""


class CronJobs:
    name = "cronjob"

    def __init__(
        self,
        client: Client,
        cron_jobs: Informer[CronJob],
        jobs: Informer[Job],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._clock = client, clock
        self._events = events.by(COMPONENT)
        self._cron_jobs, self._jobs = cron_jobs, jobs
        self._owned = Owned(jobs)
        self._written, self._created = Created(cron_jobs), Created(jobs)
        cron_jobs.subscribe(self._changed)
        jobs.subscribe(of_owner(self.queue, cron_jobs))

    async def reconcile(self, key: Key) -> None:
        if self._written.is_behind(key) or self._created.is_behind(key):
            self.queue.add_after(key, LAG)
            return
        standing = self._cron_jobs.get(*key)
        if standing is None:
            return
        jobs = sorted(self._owned.of(standing), key=lambda job: job.metadata.name)
        cron_job = await self._clean_up(standing, jobs)
        failed: StatusError | None = None
        try:
            cron_job = await self._compare(cron_job, jobs)
            cron_job = await self._schedule(key, cron_job)
        except StatusError as error:
            failed = error
        if cron_job.status != standing.status:
            with gone_is_done():
                self._written.add(key, await self._client.update(cron_job, subresource="status"))
        if failed is not None:
            raise failed

    async def _clean_up(self, cron_job: CronJob, jobs: Sequence[Job]) -> CronJob:
        """Without finished Jobs beyond the limits, oldest first."""
        for type, limit in (
            (COMPLETE, cron_job.spec.successful_jobs_history_limit),
            (FAILED, cron_job.spec.failed_jobs_history_limit),
        ):
            finished = [job for job in jobs if (end := end_of(job)) is not None and end.type == type]
            finished.sort(key=lambda job: (job.status.start_time or NEVER, job.metadata.name))
            for job in finished[: -limit or None] if limit is not None and len(finished) > limit else ():
                cron_job = await self._delete(cron_job, job) or cron_job
        return cron_job

    async def _compare(self, cron_job: CronJob, jobs: Sequence[Job]) -> CronJob:
        """With what has become of its Jobs."""
        active = {ref.uid for ref in cron_job.status.active}
        for job in jobs:
            name, end = job.metadata.name, end_of(job)
            if job.metadata.uid in active and end is not None:
                self._events.normal(
                    cron_job, "SawCompletedJob", f"Saw completed job: {name}, condition: {end.type}"
                )
                cron_job = without(cron_job, job.metadata.uid)
            elif job.metadata.uid not in active and end is None:
                said = f"Saw a job that the controller did not create or forgot: {name}"
                self._events.warning(cron_job, "UnexpectedJob", said)
            if end is not None and end.type == COMPLETE:
                newest = max(cron_job.status.last_successful_time, job.status.completion_time)
                cron_job = with_status(cron_job, replace(cron_job.status, last_successful_time=newest))
        known = {job.metadata.uid for job in jobs}
        for ref in cron_job.status.active:
            if ref.uid not in known and await self._job(ref) is None:
                self._events.normal(cron_job, "MissingJob", f"Active job went missing: {ref.name}")
                cron_job = without(cron_job, ref.uid)
        return cron_job

    async def _schedule(self, key: Key, cron_job: CronJob) -> CronJob:
        """With the Job that is due, if one is. Raises StatusError."""
        spec, now = cron_job.spec, self._clock.now()
        if cron_job.metadata.deletion_timestamp:
            return cron_job
        if spec.time_zone is not None and (fault := zone_fault(spec.time_zone)):
            said = f'invalid timeZone: "{spec.time_zone}": {fault}'
            self._events.warning(cron_job, "UnknownTimeZone", said)
            return cron_job
        if spec.suspend:
            return cron_job
        if names_zone(spec.schedule):
            said = (
                f'CRON_TZ or TZ used in schedule "{spec.schedule}" is not officially supported, see '
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
            self._events.warning(cron_job, "UnsupportedSchedule", said)
        try:
            schedule = schedule_of(cron_job)
        except ValueError as error:
            said = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._events.warning(cron_job, "UnparseableSchedule", said)
            return cron_job
        try:
            found = due(cron_job, schedule, now, within_deadline=True)
        except ValueError as error:
            said = f"invalid schedule: {spec.schedule} : {error}"
            self._events.warning(cron_job, "InvalidSchedule", said)
            return cron_job
        if found.latest is not None:
            if found.missed > MANY:
                self._events.warning(cron_job, "TooManyMissedTimes", TOO_MANY)
            cron_job = await self._start(cron_job, datetime.fromtimestamp(found.latest, UTC), now)
        self._wait(key, cron_job, schedule)
        return cron_job

    async def _start(self, cron_job: CronJob, time: datetime, now: datetime) -> CronJob:
        """With the Job of a time that has come. Raises StatusError."""
        spec, status = cron_job.spec, cron_job.status
        deadline = spec.starting_deadline_seconds
        if deadline is not None and now.timestamp() > time.timestamp() + deadline:
            said = f"Missed scheduled time to start a job: {format_datetime(time)}"
            self._events.warning(cron_job, "MissSchedule", said)
            return cron_job
        name = name_of_job(cron_job, time)
        if rfc3339(time) == status.last_schedule_time or name in {ref.name for ref in status.active}:
            return cron_job
        if spec.concurrency_policy == "Forbid" and status.active:
            said = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._events.normal(cron_job, "JobAlreadyActive", said)
            return cron_job
        if spec.concurrency_policy == "Replace":
            for ref in status.active:
                try:
                    job = await self._client.get(Job, ref.name, ref.namespace)
                except StatusError as error:
                    self._events.warning(cron_job, "FailedGet", f"Get job: {error.message}")
                    raise
                rest = await self._delete(cron_job, job)
                if rest is None:
                    said = f"could not replace job {ref.namespace}/{ref.name}"
                    raise StatusError(500, "InternalError", said)
                cron_job = rest
        made = await self._make(cron_job, time)
        if made is None:
            return cron_job
        meta = made.metadata
        ref = ObjectReference(
            kind=Job.KIND,
            api_version=Job.API_VERSION,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
        active = [*cron_job.status.active, ref]
        return with_status(
            cron_job, replace(cron_job.status, active=active, last_schedule_time=rfc3339(time))
        )

    async def _make(self, cron_job: CronJob, time: datetime) -> Job | None:
        """None when there is one of its name that is not new to the CronJob. Raises StatusError."""
        try:
            made = await self._client.create(job_of(cron_job, time))
        except StatusError as error:
            if error.reason == "AlreadyExists":
                name, namespace = name_of_job(cron_job, time), cron_job.metadata.namespace
                standing = await self._client.get(Job, name, namespace)
                ref, known = controller_of(standing.metadata), {one.uid for one in cron_job.status.active}
                is_ours = ref is not None and ref.uid == cron_job.metadata.uid
                return standing if is_ours and standing.metadata.uid not in known else None
            if not in_ending_namespace(error):
                self._events.warning(cron_job, "FailedCreate", f"Error creating job: {error.message}")
            raise
        self._events.normal(cron_job, "SuccessfulCreate", f"Created job {made.metadata.name}")
        self._created.add((cron_job.metadata.namespace, cron_job.metadata.name), made)
        return made

    async def _delete(self, cron_job: CronJob, job: Job) -> CronJob | None:
        """None when it could not be deleted."""
        meta = job.metadata
        try:
            await self._client.delete(Job, meta.name, meta.namespace, propagation="Background")
        except StatusError as error:
            self._events.warning(cron_job, "FailedDelete", f"Deleted job: {error.message}")
            return None
        self._events.normal(cron_job, "SuccessfulDelete", f"Deleted job {meta.name}")
        return without(cron_job, meta.uid)

    async def _job(self, ref: ObjectReference) -> Job | None:
        try:
            return await self._client.get(Job, ref.name, ref.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return None

    def _wait(self, key: Key, cron_job: CronJob, schedule: Schedule) -> None:
        seconds = next_in(cron_job, schedule, self._clock.now())
        if seconds is not None:
            self.queue.add_after(key, seconds)

    def _changed(self, old: CronJob | None, new: CronJob | None) -> None:
        one = new or old
        if one is None:
            return
        key = one.metadata.namespace, one.metadata.name
        before, now = (old.spec if old else None), (new.spec if new else None)
        if not before or not now or (before.schedule, before.time_zone) == (now.schedule, now.time_zone):
            self.queue.add(key)
            return
        try:
            # Nothing is made up for that another schedule would have had.
            self._wait(key, one, schedule_of(one))
        except ValueError:
            self.queue.add(key)


def name_of_job(cron_job: CronJob, time: datetime) -> str:
    return f"{cron_job.metadata.name}-{int(time.timestamp()) // 60}"


def job_of(cron_job: CronJob, time: datetime) -> Job:
    """That was due at `time`."""
    template, zone = cron_job.spec.job_template, ZoneInfo(cron_job.spec.time_zone or "UTC")
    local = time.astimezone(zone)
    at = local.isoformat(timespec="seconds") if local.utcoffset() else rfc3339(time)
    return Job(
        metadata=ObjectMeta(
            name=name_of_job(cron_job, time),
            namespace=cron_job.metadata.namespace,
            labels=template.metadata.labels,
            annotations={**template.metadata.annotations, SCHEDULED: at},
            owner_references=[controller_reference(cron_job)],
        ),
        spec=template.spec,
    )


def without(cron_job: CronJob, uid: str) -> CronJob:
    """Without an active Job."""
    active = [ref for ref in cron_job.status.active if ref.uid != uid]
    return with_status(cron_job, replace(cron_job.status, active=active))


def with_status(cron_job: CronJob, status: CronJobStatus) -> CronJob:
    return replace(cron_job, status=status)
