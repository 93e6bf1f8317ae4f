"""What controllers ask of the pods of an owner, and the writer of pods, which tells as events what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.controllers.endpoints import is_ready
from podling.model.errors import StatusError
from podling.model.rules.status import is_terminal
from podling.model.time import parse_time
from podling.model.types.meta import KubeObject, ObjectMeta, controller_reference
from podling.model.types.pod import Pod, PodTemplateSpec

LONGEST_NAME = 253
"""Of a pod."""


def is_active(pod: Pod) -> bool:
    return not is_terminal(pod) and not pod.metadata.deletion_timestamp


def is_terminating(pod: Pod) -> bool:
    return not is_terminal(pod) and bool(pod.metadata.deletion_timestamp)


def ready_since(pod: Pod) -> datetime | None:
    """None when it is not ready, or does not say since when."""
    since = next((c.last_transition_time for c in pod.status.conditions if c.type == "Ready"), None)
    return parse_time(since) if since and is_ready(pod) else None


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until a pod that stays ready is available, 0 when it is; None for one that is not ready."""
    if not is_ready(pod):
        return None
    if not min_ready_seconds:
        return 0.0
    since = ready_since(pod)
    return max(min_ready_seconds - (now - since).total_seconds(), 0.0) if since else None


def from_template(owner: KubeObject, template: PodTemplateSpec) -> Pod:
    """The pod that `template` describes, of a generated name."""
    meta, prefix = template.metadata, f"{owner.metadata.name}-"
    return Pod(
        metadata=ObjectMeta(
            generate_name=prefix if len(prefix) <= LONGEST_NAME else owner.metadata.name,
            namespace=owner.metadata.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
            finalizers=meta.finalizers,
            owner_references=[controller_reference(owner)],
        ),
        spec=template.spec,
    )


class PodWriter:
    """Tells about the owner what became of its pods."""

    def __init__(self, client: Client, events: EventRecorder) -> None:
        self._client, self._events = client, events

    async def create(self, owner: KubeObject, pod: Pod) -> Pod:
        """Raises StatusError."""
        try:
            made = await self._client.create(pod)
        except StatusError as error:
            if not in_ending_namespace(error):
                self._events.warning(owner, "FailedCreate", f"Error creating: {error.message}")
            raise
        self._events.normal(owner, "SuccessfulCreate", f"Created pod: {made.metadata.name}")
        return made

    async def delete(self, owner: KubeObject, pod: Pod) -> None:
        """Raises StatusError; a pod that is gone is none."""
        meta = pod.metadata
        try:
            await self._client.delete(Pod, meta.name, meta.namespace)
        except StatusError as error:
            if error.code == 404:
                return
            self._events.warning(owner, "FailedDelete", f"Error deleting: {error.message}")
            error.message = f"unable to delete pods: {error.message}"
            raise
        self._events.normal(owner, "SuccessfulDelete", f"Deleted pod: {meta.name}")


def in_ending_namespace(error: StatusError) -> bool:
    """Whether nothing can be created in the namespace any more."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


async def slowly(count: int, make: Callable[[], Awaitable[None]]) -> None:
    """Make 1, then 2, then 4 … at once, `count` in all; after a failure no more. Raises the first
    StatusError."""
    batch = 1
    while count > 0:
        batch = min(batch, count)
        await together([make() for _ in range(batch)])
        count, batch = count - batch, 2 * batch


async def together(works: Sequence[Awaitable[None]]) -> None:
    """Wait for all of them. Raises the first StatusError."""
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
