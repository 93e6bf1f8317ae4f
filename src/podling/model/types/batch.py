"""batch/v1: Job and CronJob."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import SET, Int32, Int64, Part, Time, always, null, patched_by
from podling.model.types.meta import KubeObject, LabelSelector, ObjectMeta
from podling.model.types.pod import PodTemplateSpec
from podling.model.types.references import ObjectReference


class PodFailurePolicyOnExitCodesRequirement(Part):
    container_name: str | None = None
    operator: str = always(str)
    values: Annotated[list[Int32], SET] = always(list)


class PodFailurePolicyOnPodConditionsPattern(Part):
    type: str = always(str)
    status: str = always(str)


class PodFailurePolicyRule(Part):
    action: str = always(str)
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: list[PodFailurePolicyOnPodConditionsPattern] = []


class PodFailurePolicy(Part):
    rules: list[PodFailurePolicyRule] = always(list)


class SuccessPolicyRule(Part):
    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(Part):
    rules: list[SuccessPolicyRule] = always(list)


class JobSpec(Part):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplateSpec = always(PodTemplateSpec)
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class JobTemplateSpec(Part):
    metadata: ObjectMeta = always(ObjectMeta)
    spec: JobSpec = always(JobSpec)


class CronJobSpec(Part):
    schedule: str = always(str)
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = always(JobTemplateSpec)
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJobStatus(Part):
    active: list[ObjectReference] = []
    last_schedule_time: Time = ""
    last_successful_time: Time = ""


class CronJob(KubeObject):
    KIND: ClassVar[str] = "CronJob"
    API_VERSION: ClassVar[str] = "batch/v1"

    spec: CronJobSpec = always(CronJobSpec)
    status: CronJobStatus = always(CronJobStatus)


class JobCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_probe_time: Time | None = null()
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class UncountedTerminatedPods(Part):
    succeeded: Annotated[list[str], SET] = []
    failed: Annotated[list[str], SET] = []


class JobStatus(Part):
    conditions: Annotated[list[JobCondition], patched_by("type")] = []
    start_time: Time = ""
    completion_time: Time = ""
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: Int32 | None = None


class Job(KubeObject):
    KIND: ClassVar[str] = "Job"
    API_VERSION: ClassVar[str] = "batch/v1"

    spec: JobSpec = always(JobSpec)
    status: JobStatus = always(JobStatus)
