"""Jobs, which run pods to their end, and CronJobs, which make Jobs by the clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from podling.apiserver.kinds.columns import (
    AGE,
    NAME,
    NONE,
    age,
    or_none,
    selector_text,
)
from podling.apiserver.kinds.kind import Column, Controlled, Status, Subresource
from podling.apiserver.kinds.pods.update import drop_alpha_fields, with_node_affinity
from podling.apiserver.kinds.pods.warnings import name_warnings, template_warnings
from podling.apiserver.kinds.workloads import CONTAINERS, IMAGES, SELECTOR, container_cells
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import IMMUTABLE, internal, invalid
from podling.apiserver.rules.job_status import validate_job_status
from podling.apiserver.rules.jobs import (
    CONTROLLER_UID,
    JOB_NAME,
    OLD_CONTROLLER_UID,
    OLD_JOB_NAME,
    validate_cron_job_name,
    validate_cron_job_spec,
    validate_job,
    validate_job_spec,
)
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.defaults import default_pod_spec
from podling.model.rules.jobs import (
    FAILED_ONLY,
    INDEXED,
    NON_INDEXED,
    TERMINATING_OR_FAILED,
    has_condition,
    is_finished,
)
from podling.model.rules.schedule import names_zone
from podling.model.scheme import resource_of
from podling.model.time import human_duration, parse_time
from podling.model.types.batch import CronJob, Job, JobSpec
from podling.model.types.container import Container
from podling.model.types.meta import LabelSelector
from podling.model.types.pod import PodSpec

BACKOFF_LIMIT, NO_BACKOFF_LIMIT = 6, (1 << 31) - 1
STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
KEPT = (
    ("completion_mode", "completionMode"),
    ("pod_failure_policy", "podFailurePolicy"),
    ("backoff_limit_per_index", "backoffLimitPerIndex"),
    ("managed_by", "managedBy"),
    ("success_policy", "successPolicy"),
)
TOO_MANY = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


def _warnings(spec: JobSpec, path: str) -> list[str]:
    told = []
    if (
        spec.completion_mode == INDEXED
        and (spec.completions or 0) > 100_000
        and (spec.parallelism or 0) > 10_000
    ):
        told.append(f"{path}: {TOO_MANY}")
    return told + template_warnings(spec.template, f"{path}.template")


def _default_failure_policy(spec: JobSpec) -> None:
    for rule in spec.pod_failure_policy.rules if spec.pod_failure_policy is not None else ():
        for pattern in rule.on_pod_conditions:
            pattern.status = pattern.status or "True"


class _JobStatus(Status):
    def prepare_update(self, new: Job, old: Job) -> None:
        super().prepare_update(new, old)
        # As it is read: a Job without labels has those of its pods.
        new.metadata.labels = new.metadata.labels or dict(new.spec.template.metadata.labels)


class Jobs(Controlled[Job]):
    resource = resource_of(Job)
    warns_of_changes = True
    orphans = True
    deletion_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
        "remove them or set propagationPolicy=Orphan to suppress this warning"
    )
    subresources: Mapping[str, Subresource] = {"status": _JobStatus(validate_job_status)}
    selectable_fields = {"status.successful": lambda obj: str(obj.status.succeeded)}
    unselectable = 'field label "{}" not supported for Job'
    columns = (
        NAME,
        Column("Status", description="How far it has come."),
        Column("Completions", description="How many pods have succeeded, of those wanted."),
        Column("Duration", description="How long it has run."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    )

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates

    def default(self, obj: Job) -> None:
        spec = obj.spec
        default_pod_spec(spec.template.spec)
        if spec.completions is None and spec.parallelism is None:
            spec.completions = 1
        spec.parallelism = 1 if spec.parallelism is None else spec.parallelism
        if spec.backoff_limit is None:
            spec.backoff_limit = BACKOFF_LIMIT if spec.backoff_limit_per_index is None else NO_BACKOFF_LIMIT
        # One dict of both: what is generated becomes labels of the Job, too, if it has none of its own.
        obj.metadata.labels = obj.metadata.labels or spec.template.metadata.labels
        spec.completion_mode = NON_INDEXED if spec.completion_mode is None else spec.completion_mode
        spec.suspend = bool(spec.suspend)
        if spec.pod_replacement_policy is None:
            spec.pod_replacement_policy = (
                TERMINATING_OR_FAILED if spec.pod_failure_policy is None else FAILED_ONLY
            )
        spec.manual_selector = bool(spec.manual_selector)
        _default_failure_policy(spec)

    def prepare_create(self, obj: Job, now: datetime) -> None:
        super().prepare_create(obj, now)
        meta, spec = obj.metadata, obj.spec
        drop_alpha_fields(spec.template.spec, None, self._gates)
        if not spec.manual_selector:
            made = {
                OLD_JOB_NAME: meta.name,
                JOB_NAME: meta.name,
                OLD_CONTROLLER_UID: meta.uid,
                CONTROLLER_UID: meta.uid,
            }
            for key, value in made.items():
                spec.template.metadata.labels.setdefault(key, value)
            selector = spec.selector = spec.selector or LabelSelector()
            selector.match_labels.setdefault(CONTROLLER_UID, meta.uid)
        meta.labels = meta.labels or dict(spec.template.metadata.labels)

    def prepare_update(self, new: Job, old: Job) -> None:
        super().prepare_update(new, old)
        drop_alpha_fields(new.spec.template.spec, old.spec.template.spec, self._gates)

    def validate(self, obj: Job) -> list[Cause]:
        return list(validate_job(obj, self._gates))

    def validate_changed(self, new: Job, old: Job) -> list[Cause]:
        return list(validate_job(new, self._gates, old))

    def validate_update(self, new: Job, old: Job) -> list[Cause]:
        is_held = bool(old.spec.suspend) and not old.status.active
        is_held = is_held and (not old.status.start_time or has_condition(old, "Suspended"))
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            # Kubernetes checks the spec of an updated Job twice and names each of its faults twice.
            *validate_job_spec(new.spec, "spec", self._gates),
            *_validate_change(new.spec, old.spec, "spec", is_held=is_held),
        ]

    def warnings(self, obj: Job) -> list[str]:
        return _warnings(obj.spec, "spec")

    def create_warnings(self, obj: Job) -> list[str]:
        return [*name_warnings(obj.metadata.name), *super().create_warnings(obj)]

    def row(self, obj: Job, now: datetime) -> list[Any]:
        meta, spec, status = obj.metadata, obj.spec, obj.status
        if spec.completions is not None:
            wanted = str(spec.completions)
        else:
            parallelism = spec.parallelism or 0
            wanted = f"1 of {parallelism}" if parallelism > 1 else "1"
        states = [state for state in STATES if has_condition(obj, state)]
        if meta.deletion_timestamp and not is_finished(obj):
            states = ["Terminating"]
        duration = ""
        if status.start_time:
            end = parse_time(status.completion_time) if status.completion_time else now
            duration = human_duration((end - parse_time(status.start_time)).total_seconds())
        return [
            meta.name,
            states[0] if states else "Running",
            f"{status.succeeded}/{wanted}",
            duration,
            age(meta.creation_timestamp, now),
            *container_cells(spec.template.spec),
            selector_text(spec.selector),
        ]


def _validate_change(new: JobSpec, old: JobSpec, path: str, *, is_held: bool) -> Iterator[Cause]:
    """`is_held`: whether the Job was suspended before it started, so that where its pods will run may
    change."""
    if new.completions != old.completions:
        if new.completion_mode != INDEXED:
            yield invalid(f"{path}.completions", new.completions, IMMUTABLE)
        elif new.completions is not None and new.completions != new.parallelism:
            why = f"can only be modified in tandem with {path}.parallelism"
            yield invalid(f"{path}.completions", new.completions, why)
    if new.selector != old.selector:
        yield invalid(f"{path}.selector", new.selector, IMMUTABLE)
    if not is_held and new.template != old.template:
        yield invalid(f"{path}.template", new.template, IMMUTABLE)
    elif is_held and new.template.spec != _with_changes(new.template.spec, old.template.spec):
        yield invalid(f"{path}.template.spec", new.template.spec, IMMUTABLE)
    for attribute, wire in KEPT:
        if getattr(new, attribute) != getattr(old, attribute):
            yield invalid(f"{path}.{wire}", internal(getattr(new, attribute)), IMMUTABLE)


def _with_changes(new: PodSpec, old: PodSpec) -> PodSpec:
    """The old spec with all of the new one that may change before a suspended Job starts: where its pods run
    and what they need."""
    return msgspec.structs.replace(
        old,
        node_selector=new.node_selector,
        affinity=with_node_affinity(new.affinity, old.affinity),
        tolerations=new.tolerations,
        scheduling_gates=new.scheduling_gates,
        containers=_with_resources(new.containers, old.containers),
        init_containers=_with_resources(new.init_containers, old.init_containers),
    )


def _with_resources(new: list[Container], old: list[Container]) -> list[Container]:
    if len(new) != len(old):
        return old
    pairs = zip(new, old, strict=True)
    return [msgspec.structs.replace(before, resources=after.resources) for after, before in pairs]


class _CronJobStatus(Status):
    standard_finalizers = False


class CronJobs(Controlled[CronJob]):
    resource = resource_of(CronJob)
    warns_of_changes = True
    judges_prefix_again = False
    subresources: Mapping[str, Subresource] = {"status": _CronJobStatus()}
    columns = (
        NAME,
        Column("Schedule", description="When Jobs are made, as in cron."),
        Column("Timezone", description="The time zone of the schedule."),
        Column("Suspend", "boolean", description="Whether no Jobs are made for now."),
        Column("Active", "integer", description="How many of its Jobs run."),
        Column("Last Schedule", description="Time since the last Job was due."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    )

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates

    def default(self, obj: CronJob) -> None:
        spec = obj.spec
        default_pod_spec(spec.job_template.spec.template.spec)
        _default_failure_policy(spec.job_template.spec)
        spec.concurrency_policy = spec.concurrency_policy or "Allow"
        spec.suspend = bool(spec.suspend)
        if spec.successful_jobs_history_limit is None:
            spec.successful_jobs_history_limit = 3
        if spec.failed_jobs_history_limit is None:
            spec.failed_jobs_history_limit = 1

    def prepare_create(self, obj: CronJob, now: datetime) -> None:
        super().prepare_create(obj, now)
        drop_alpha_fields(obj.spec.job_template.spec.template.spec, None, self._gates)

    def prepare_update(self, new: CronJob, old: CronJob) -> None:
        super().prepare_update(new, old)
        template, standing = new.spec.job_template.spec.template, old.spec.job_template.spec.template
        drop_alpha_fields(template.spec, standing.spec, self._gates)

    def validate(self, obj: CronJob) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata),
            *validate_cron_job_spec(obj.spec, "spec", self._gates),
        ]

    def validate_create(self, obj: CronJob) -> list[Cause]:
        return [*self.validate(obj), *validate_cron_job_name(obj.metadata.name)]

    def validate_changed(self, new: CronJob, old: CronJob) -> list[Cause]:
        allows_zone = names_zone(old.spec.schedule)
        return [
            *metadata.validate(new.metadata),
            *validate_cron_job_spec(new.spec, "spec", self._gates, allows_zone=allows_zone),
        ]

    def warnings(self, obj: CronJob) -> list[str]:
        return _warnings(obj.spec.job_template.spec, "spec.jobTemplate.spec")

    def create_warnings(self, obj: CronJob) -> list[str]:
        return [*name_warnings(obj.metadata.name), *super().create_warnings(obj)]

    def row(self, obj: CronJob, now: datetime) -> list[Any]:
        spec, status = obj.spec, obj.status
        job = spec.job_template.spec
        return [
            obj.metadata.name,
            spec.schedule,
            or_none(spec.time_zone or ""),
            str(bool(spec.suspend)),
            len(status.active),
            age(status.last_schedule_time, now) if status.last_schedule_time else NONE,
            age(obj.metadata.creation_timestamp, now),
            *container_cells(job.template.spec),
            selector_text(job.selector),
        ]
