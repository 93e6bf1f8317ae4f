"""The pods of a Job: what they are made of, and how one is given up once it is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from podling.client.client import Client
from podling.controllers.workloads.claims import STRATEGIC
from podling.controllers.workloads.job_policies import judge, number
from podling.controllers.workloads.pods import from_template
from podling.model.errors import StatusError
from podling.model.rules.jobs import COMPLETION_INDEX, INDEX_FAILURES, INDEX_IGNORED, TRACKING
from podling.model.types.batch import Job
from podling.model.types.container import Container, EnvVar, EnvVarSource
from podling.model.types.pod import Pod
from podling.model.types.references import ObjectFieldSelector

ENVIRONMENT = "JOB_COMPLETION_INDEX"
LONGEST_PREFIX = 58
"""Of the name of a pod, which is the rest of 63 characters."""


def pod_of(job: Job, index: int | None, waiting: Mapping[int, Pod]) -> Pod:
    """`waiting`: the failed pods in whose place others are made."""
    pod = from_template(job, job.spec.template)
    meta, spec = pod.metadata, pod.spec
    meta = replace(meta, finalizers=[*(one for one in meta.finalizers if one != TRACKING), TRACKING])
    if index is None:
        return replace(pod, metadata=meta)
    suffix = f"-{index}-"
    annotations = {**meta.annotations, COMPLETION_INDEX: str(index)}
    if job.spec.backoff_limit_per_index is not None:
        annotations |= failure_counts(job, waiting.get(index))
    return replace(
        pod,
        metadata=replace(
            meta,
            generate_name=job.metadata.name[: LONGEST_PREFIX - len(suffix)] + suffix,
            labels={**meta.labels, COMPLETION_INDEX: str(index)},
            annotations=annotations,
        ),
        spec=replace(
            spec,
            hostname=f"{job.metadata.name}-{index}",
            init_containers=told_index(spec.init_containers),
            containers=told_index(spec.containers),
        ),
    )


def failure_counts(job: Job, failed: Pod | None) -> dict[str, str]:
    """The annotations of the pod that is made in place of a failed one."""
    if failed is None:
        return {INDEX_FAILURES: "0"}
    counts = judge(job, failed).counts
    annotations = failed.metadata.annotations
    failures = number(annotations.get(INDEX_FAILURES, "")) + counts
    ignored = number(annotations.get(INDEX_IGNORED, "")) + (not counts)
    told = {INDEX_FAILURES: str(failures)}
    return {**told, INDEX_IGNORED: str(ignored)} if ignored else told


def told_index(containers: Iterable[Container]) -> list[Container]:
    """With a variable for the index, unless they have one of its name."""
    path = f"metadata.labels['{COMPLETION_INDEX}']"
    told = EnvVar(name=ENVIRONMENT, value_from=EnvVarSource(field_ref=ObjectFieldSelector(field_path=path)))
    return [
        container
        if any(variable.name == ENVIRONMENT for variable in container.env)
        else replace(container, env=[*container.env, told])
        for container in containers
    ]


async def without_finalizer(client: Client, pod: Pod, resource_version: str = "") -> None:
    """Raises StatusError; a pod that is gone is none. With `resource_version`, only if it is still that."""
    meta = pod.metadata
    same = {"resourceVersion": resource_version} if resource_version else {}
    body = {"metadata": {"uid": meta.uid, **same, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
    try:
        await client.patch(Pod, meta.name, meta.namespace, body, patch_type=STRATEGIC)
    except StatusError as error:
        # 422: it is another object of the name.
        if error.code not in (404, 422):
            raise
