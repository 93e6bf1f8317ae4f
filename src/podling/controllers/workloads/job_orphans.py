"""Pods that are tracked for a Job that does not count them any more: it is finished, or gone, or has released
them. Their finalizer goes, or they would never be deleted."""

from __future__ import annotations

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key
from podling.controllers.workloads.claims import Owned, controller_of
from podling.controllers.workloads.job_pods import without_finalizer
from podling.model.errors import StatusError
from podling.model.rules.jobs import is_finished, is_managed_elsewhere, is_tracked
from podling.model.types.batch import Job
from podling.model.types.pod import Pod


class TrackedPods:
    name = "job-orphan-pod"

    def __init__(self, client: Client, jobs: Informer[Job], pods: Informer[Pod]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._jobs, self._pods = client, jobs, pods
        self._owned = Owned(pods, is_tracked)
        pods.subscribe(self._pod_changed)
        jobs.subscribe(self._job_changed)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.get(*key)
        if pod is not None and is_tracked(pod) and not await is_counted(self._client, self._jobs, pod):
            # Not if it has been adopted meanwhile.
            await without_finalizer(self._client, pod, pod.metadata.resource_version)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or not is_tracked(new):
            return
        ref = controller_of(new.metadata)
        job = self._jobs.get(new.metadata.namespace, ref.name) if ref else None
        if job is None or ref is None or job.metadata.uid != ref.uid or is_finished(job):
            self.queue.add((new.metadata.namespace, new.metadata.name))

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        gone = old if old and (new is None or new.metadata.uid != old.metadata.uid) else None
        over = new if new and is_finished(new) else gone
        for pod in self._owned.of(over) if over is not None else ():
            self.queue.add((pod.metadata.namespace, pod.metadata.name))


async def is_counted(client: Client, jobs: Informer[Job], pod: Pod) -> bool:
    """Whether the finalizer of a pod is not ours to take. Asked of the server if the informer does not know
    the Job, which may be newer. Raises StatusError."""
    ref = controller_of(pod.metadata)
    if ref is None:
        return False
    if (ref.api_version, ref.kind) != (Job.API_VERSION, Job.KIND):
        return True
    namespace = pod.metadata.namespace
    job = jobs.get(namespace, ref.name)
    if job is None or job.metadata.uid != ref.uid:
        try:
            job = await client.get(Job, ref.name, namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return False
    return job.metadata.uid == ref.uid and (is_managed_elsewhere(job) or not is_finished(job))
