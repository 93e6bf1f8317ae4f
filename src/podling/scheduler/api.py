"""The writes of the scheduler: bindings, statuses, evictions. What is gone needs nothing done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.model.errors import StatusError
from podling.model.meta import ObjectMeta
from podling.model.pod import Binding, Pod
from podling.model.references import ObjectReference
from podling.model.time import Clock
from podling.scheduler.condition import Patch, not_nominated, not_scheduled, preempted
from podling.scheduler.pod_info import PodInfo

STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class SchedulerApi:
    def __init__(self, client: Client, events: EventRecorder, clock: Clock) -> None:
        self._client, self._events, self._clock = client, events, clock

    async def bind(self, pod: Pod, node: str) -> None:
        """Raises StatusError, OSError."""
        meta = pod.metadata
        binding = Binding(
            metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid),
            target=ObjectReference(kind="Node", name=node),
        )
        await self._client.create_subresource(Pod, meta.name, "binding", binding)
        self._events.normal(pod, "Scheduled", f"Successfully assigned {meta.namespace}/{meta.name} to {node}")

    async def say_not_scheduled(self, pod: Pod, reason: str, message: str, nominated: str) -> None:
        """Raises StatusError, OSError."""
        self._events.warning(pod, "FailedScheduling", message)
        await self._patch(pod, not_scheduled(pod, reason, message, nominated, self._clock.now()))

    async def preempt(self, victims: Iterable[PodInfo], node: str, preemptor: Pod) -> None:
        """Raises an ExceptionGroup of StatusError and OSError when some could not be told to go."""
        async with asyncio.TaskGroup() as tasks:
            for victim in victims:
                if not victim.pod.metadata.deletion_timestamp:
                    tasks.create_task(self._preempt(victim.pod, node, preemptor))

    async def clear_nomination(self, pod: Pod) -> None:
        """Raises StatusError, OSError."""
        if pod.status.nominated_node_name:
            await self._patch(pod, not_nominated(pod))

    async def _preempt(self, victim: Pod, node: str, preemptor: Pod) -> None:
        await self._patch(victim, preempted(victim, preemptor, self._clock.now()))
        meta = victim.metadata
        try:
            await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except StatusError as error:
            # 409: another pod has the name by now.
            if error.code not in (404, 409):
                raise
            return
        self._events.normal(victim, "Preempted", f"Preempted by pod {preemptor.metadata.uid} on node {node}")

    async def _patch(self, pod: Pod, patch: Patch | None) -> None:
        if patch is None:
            return
        meta = pod.metadata
        try:
            await self._client.patch(
                Pod, meta.name, meta.namespace, patch, subresource="status", patch_type=STRATEGIC_PATCH
            )
        except StatusError as error:
            if error.code not in (404, 409):
                raise
