"""Validation of Jobs and CronJobs (`pkg/apis/batch/validation` of Kubernetes), but for a Job's status."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import (
    all_invalid,
    at_least,
    choice,
    duplicate,
    internal,
    invalid,
    not_supported,
    one_of,
    required,
    too_long,
    too_many,
)
from podling.apiserver.rules.pod.spec import validate_pod_template
from podling.model import names
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.indexes import parse_indexes
from podling.model.rules.jobs import FAILED_ONLY, INDEXED, NON_INDEXED, TERMINATING_OR_FAILED
from podling.model.rules.schedule import names_zone, schedule_fault, zone_fault
from podling.model.selectors import from_label_selector
from podling.model.types.batch import (
    CronJobSpec,
    Job,
    JobSpec,
    JobTemplateSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)

JOB_NAME, CONTROLLER_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"
OLD_JOB_NAME, OLD_CONTROLLER_UID = "job-name", "controller-uid"
MOST_INDEXES, MANY_INDEXES, FEWER = 100_000, 100_000, 10_000
MOST_RULES, MOST_EXIT_CODES, MOST_MANAGER, MOST_SUCCEEDED = 20, 255, 63, 64 * 1024
MOST_CRON_JOB_NAME = 52
COUNTS = (
    ("parallelism", "parallelism"),
    ("completions", "completions"),
    ("active_deadline_seconds", "activeDeadlineSeconds"),
    ("backoff_limit", "backoffLimit"),
    ("ttl_seconds_after_finished", "ttlSecondsAfterFinished"),
    ("backoff_limit_per_index", "backoffLimitPerIndex"),
)
ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS = ("In", "NotIn")
NEEDS_INDEXES = "requires indexed completion mode"


def validate_job(job: Job, gates: Gates = DEFAULT_GATES, old: Job | None = None) -> Iterator[Cause]:
    """`old`: the Job before it changed, if it is no new one."""
    yield from metadata.validate(job.metadata)
    spec = job.spec
    standing = old.spec.template.metadata.labels if old is not None else None
    has_new_labels = standing is None or (JOB_NAME in standing and CONTROLLER_UID in standing)
    yield from _validate_generated_selector(job, has_new_labels=has_new_labels)
    yield from validate_job_spec(spec, "spec", gates)
    if spec.completion_mode == INDEXED and spec.completions is not None and spec.completions > 0:
        hostname = f"{job.metadata.name}-{spec.completions - 1}"
        if names.dns1123_label(hostname):
            why = f"will not able to create pod with invalid DNS label: {hostname}"
            yield invalid("metadata.name", job.metadata.name, why)


def _validate_generated_selector(job: Job, *, has_new_labels: bool) -> Iterator[Cause]:
    """`has_new_labels`: whether labels with a domain must be there beside those without."""
    meta, labels = job.metadata, job.spec.template.metadata.labels
    selector = job.spec.selector
    if job.spec.manual_selector or selector is None:
        return
    path = "spec.template.metadata.labels"
    generated = {OLD_CONTROLLER_UID: meta.uid, OLD_JOB_NAME: meta.name}
    if has_new_labels:
        generated |= {CONTROLLER_UID: meta.uid, JOB_NAME: meta.name}
    for key, value in generated.items():
        if key not in labels:
            yield required(f"{path}[{key}]", f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(f"{path}[{key}]", labels, f"must be '{value}'")
    is_valid = not any(metadata.validate_label_selector(selector, ""))
    if is_valid and not from_label_selector(selector).matches(generated):
        yield invalid("spec.selector", selector, "`selector` not auto-generated")


def validate_job_spec(spec: JobSpec, path: str, gates: Gates = DEFAULT_GATES) -> Iterator[Cause]:
    yield from _validate_without_selector(spec, path, gates)
    faults = list(metadata.validate_label_selector(spec.selector, f"{path}.selector"))
    if spec.selector is None:
        yield required(f"{path}.selector")
    yield from faults
    labels = spec.template.metadata.labels
    if not faults and not from_label_selector(spec.selector).matches(labels):
        why = "`selector` does not match template `labels`"
        yield invalid(f"{path}.template.metadata.labels", labels or None, why)


def _validate_without_selector(spec: JobSpec, path: str, gates: Gates) -> Iterator[Cause]:
    for attribute, wire in COUNTS:
        count = getattr(spec, attribute)
        if count is not None:
            yield from at_least(f"{path}.{wire}", count, 0)
    if spec.max_failed_indexes is not None:
        yield from at_least(f"{path}.maxFailedIndexes", spec.max_failed_indexes, 0)
        if spec.backoff_limit_per_index is None:
            yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.managed_by is not None:
        yield from _validate_manager(spec.managed_by, f"{path}.managedBy")
    if spec.completion_mode is not None:
        yield from choice(f"{path}.completionMode", spec.completion_mode, (NON_INDEXED, INDEXED))
        if spec.completion_mode == INDEXED:
            yield from _validate_indexed(spec, path)
    if spec.completion_mode != INDEXED:
        for attribute, wire in (
            ("backoff_limit_per_index", "backoffLimitPerIndex"),
            ("max_failed_indexes", "maxFailedIndexes"),
        ):
            if getattr(spec, attribute) is not None:
                yield invalid(f"{path}.{wire}", getattr(spec, attribute), NEEDS_INDEXES)
    if spec.pod_failure_policy is not None:
        yield from _validate_failure_policy(spec, spec.pod_failure_policy, f"{path}.podFailurePolicy")
    if spec.success_policy is not None:
        where, rules = f"{path}.successPolicy", spec.success_policy.rules
        if spec.completion_mode != INDEXED:
            yield invalid(where, internal(spec.success_policy), NEEDS_INDEXES)
        else:
            if not rules:
                why = "at least one rules must be specified when the successPolicy is specified"
                yield required(f"{where}.rules", why)
            if len(rules) > MOST_RULES:
                yield too_many(f"{where}.rules", len(rules), MOST_RULES)
            for i, rule in enumerate(rules):
                yield from _validate_success(rule, spec.completions or 0, f"{where}.rules[{i}]")
    yield from _validate_replacement(spec, f"{path}.podReplacementPolicy")
    yield from validate_pod_template(spec.template, f"{path}.template", gates)
    yield from _validate_restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _validate_manager(name: str, path: str) -> Iterator[Cause]:
    domain, slash, rest = name.partition("/")
    if not name:
        yield required(path)
    elif not slash or not domain or not rest:
        yield invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from all_invalid(path, domain, names.dns1123_subdomain(domain))
    if len(name) > MOST_MANAGER:
        yield too_long(path, MOST_MANAGER)


def _validate_indexed(spec: JobSpec, path: str) -> Iterator[Cause]:
    completions, parallelism, most = spec.completions, spec.parallelism, spec.max_failed_indexes
    at_once = f"{path}.parallelism"
    if completions is None:
        yield required(f"{path}.completions", f"when completion mode is {INDEXED}")
    limit = f"must be less than or equal to {MOST_INDEXES}"
    if parallelism is not None and parallelism > MOST_INDEXES:
        yield invalid(at_once, parallelism, f"{limit} when completion mode is {INDEXED}")
    if completions is not None and most is not None and most > completions:
        yield invalid(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions")
    if most is not None and most > MOST_INDEXES:
        yield invalid(f"{path}.maxFailedIndexes", most, limit)
    if completions is not None and completions > MANY_INDEXES and spec.backoff_limit_per_index is not None:
        few = (
            f"must be less than or equal to {FEWER} when completions are above {MANY_INDEXES} "
            "and used with backoff limit per index"
        )
        if most is None:
            why = f"must be specified when completions is above {MANY_INDEXES}"
            yield required(f"{path}.maxFailedIndexes", why)
        if parallelism is not None and parallelism > FEWER:
            yield invalid(at_once, parallelism, few)
        if most is not None and most > FEWER:
            yield invalid(f"{path}.maxFailedIndexes", most, few)


def _validate_failure_policy(spec: JobSpec, policy: PodFailurePolicy, path: str) -> Iterator[Cause]:
    if len(policy.rules) > MOST_RULES:
        yield too_many(f"{path}.rules", len(policy.rules), MOST_RULES)
    pod = spec.template.spec
    containers = {one.name for one in (*pod.containers, *pod.init_containers)}
    for i, rule in enumerate(policy.rules):
        where = f"{path}.rules[{i}]"
        if not rule.action:
            yield required(f"{where}.action", _valid(ACTIONS))
        elif rule.action == "FailIndex" and spec.backoff_limit_per_index is None:
            why = "requires the backoffLimitPerIndex to be set"
            yield invalid(f"{where}.action", rule.action, why)
        else:
            yield from one_of(f"{where}.action", rule.action, ACTIONS)
        yield from _validate_failure_rule(rule, containers, where)


def _validate_failure_rule(rule: PodFailurePolicyRule, containers: set[str], path: str) -> Iterator[Cause]:
    if rule.on_exit_codes is not None:
        yield from validate_exit_codes(rule.on_exit_codes, containers, f"{path}.onExitCodes")
    patterns, where = rule.on_pod_conditions, f"{path}.onPodConditions"
    if len(patterns) > MOST_RULES:
        yield too_many(where, len(patterns), MOST_RULES)
    for i, pattern in enumerate(patterns):
        yield from metadata.validate_label_key(pattern.type, f"{where}[{i}].type")
        yield from one_of(f"{where}[{i}].status", pattern.status, ("False", "True", "Unknown"))
    if rule.on_exit_codes is not None and patterns:
        yield _plain(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    if rule.on_exit_codes is None and not patterns:
        yield _plain(path, "specifying one of OnExitCodes and OnPodConditions is required")


def _valid(values: tuple[str, ...]) -> str:
    listed = " ".join(f'"{value}"' for value in values)
    return f"valid values: [{listed}]"


def _plain(path: str, why: str) -> Cause:
    """An invalid value that is not shown."""
    return Cause("FieldValueInvalid", f"Invalid value: {why}", path)


def validate_exit_codes(
    codes: PodFailurePolicyOnExitCodesRequirement, containers: set[str], path: str
) -> Iterator[Cause]:
    if not codes.operator:
        yield required(f"{path}.operator", _valid(OPERATORS))
    else:
        yield from choice(f"{path}.operator", codes.operator, OPERATORS)
    if codes.container_name is not None and codes.container_name not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", codes.container_name, why)
    values, where = codes.values, f"{path}.values"
    if not values:
        yield invalid(where, None, "at least one value is required")
    if len(values) > MOST_EXIT_CODES:
        yield too_many(where, len(values), MOST_EXIT_CODES)
    seen: set[int] = set()
    for i, value in enumerate(values):
        if codes.operator == "In" and value == 0:
            yield invalid(f"{where}[{i}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{where}[{i}]", value)
        seen.add(value)
    if values != sorted(values):
        yield invalid(where, values, "must be ordered")


def _validate_success(rule: SuccessPolicyRule, completions: int, path: str) -> Iterator[Cause]:
    indexes, count, within = rule.succeeded_indexes, rule.succeeded_count, None
    if indexes is None and count is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes) > MOST_SUCCEEDED:
            yield too_long(where, MOST_SUCCEEDED)
        within = 0
        try:
            within = sum(map(len, parse_indexes(indexes, completions)))
        except ValueError as error:
            yield invalid(where, indexes, f"error parsing succeededIndexes: {error}")
    if count is not None:
        where = f"{path}.succeededCount"
        yield from at_least(where, count, 0)
        most = "must be less than or equal to"
        if count > completions:
            why = f"{most} {completions} (the number of specified completions)"
            yield invalid(where, count, why)
        if within is not None and count > within:
            why = f"{most} {within} (the number of indexes in the specified succeededIndexes field)"
            yield invalid(where, count, why)


def _validate_replacement(spec: JobSpec, path: str) -> Iterator[Cause]:
    if spec.pod_replacement_policy is not None:
        allowed = (
            (FAILED_ONLY,) if spec.pod_failure_policy is not None else (FAILED_ONLY, TERMINATING_OR_FAILED)
        )
        yield from choice(path, spec.pod_replacement_policy, allowed)


def _validate_restart_policy(spec: JobSpec, path: str) -> Iterator[Cause]:
    policy = spec.template.spec.restart_policy
    if policy in ("", "Always"):
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.pod_failure_policy is not None and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def validate_cron_job_name(name: str) -> Iterator[Cause]:
    # A Job's name is this one, a dash and ten digits, and has room for its pods' suffixes.
    if len(name) > MOST_CRON_JOB_NAME:
        yield invalid("metadata.name", name, "must be no more than 52 characters")


def validate_cron_job_spec(
    spec: CronJobSpec, path: str, gates: Gates = DEFAULT_GATES, *, allows_zone: bool = False
) -> Iterator[Cause]:
    """`allows_zone`: whether the schedule may name a time zone, as it once might."""
    schedule, where, zone = spec.schedule, f"{path}.schedule", spec.time_zone
    if not schedule:
        yield required(where)
    else:
        if fault := schedule_fault(schedule):
            yield invalid(where, schedule, fault)
        if names_zone(schedule) and not allows_zone:
            why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            yield invalid(where, schedule, why)
        elif names_zone(schedule) and zone is not None:
            yield invalid(where, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
    if spec.starting_deadline_seconds is not None:
        yield from at_least(f"{path}.startingDeadlineSeconds", spec.starting_deadline_seconds, 0)
    if zone is not None:
        yield from _validate_zone(zone, f"{path}.timeZone")
    yield from one_of(f"{path}.concurrencyPolicy", spec.concurrency_policy, ("Allow", "Forbid", "Replace"))
    yield from _validate_job_template(spec.job_template, f"{path}.jobTemplate", gates)
    for wire, limit in (
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ):
        if limit is not None:
            yield from at_least(f"{path}.{wire}", limit, 0)


def _validate_zone(zone: str, path: str) -> Iterator[Cause]:
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, zone, why)
    if fault := zone_fault(zone):
        yield invalid(path, zone, fault)


def _validate_job_template(template: JobTemplateSpec, path: str, gates: Gates) -> Iterator[Cause]:
    spec = template.spec
    yield from _validate_without_selector(spec, f"{path}.spec", gates)
    if spec.selector is not None:
        yield invalid(f"{path}.spec.selector", spec.selector, "`selector` will be auto-generated")
    if spec.manual_selector:
        yield not_supported(f"{path}.spec.manualSelector", spec.manual_selector, ("nil", "false"))
