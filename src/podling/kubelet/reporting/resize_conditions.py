"""How a resize shows: the conditions PodResizePending and PodResizeInProgress, which are there only while
there is something to say, and the events of their coming and going. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from podling.kubelet.observed import ObservedPod
from podling.kubelet.planning.resize import is_in_progress
from podling.kubelet.reporting.conditions import (
    RESIZE_IN_PROGRESS,
    RESIZE_PENDING,
    Judgement,
    condition_maker,
)
from podling.kubelet.reporting.status_event import StatusEvent
from podling.model.base import Part
from podling.model.container import Container, ResourceRequirements
from podling.model.fields import Int64
from podling.model.json import encode
from podling.model.pod import Pod
from podling.model.pod_status import PodCondition, PodStatus


def resize_conditions(pod: Pod, observed: ObservedPod, now: datetime) -> Iterator[PodCondition]:
    make = condition_maker(pod, now)
    if pending := observed.pending_resize:
        yield make(RESIZE_PENDING, Judgement(True, pending.reason, pending.message))
    if is_in_progress(pod, observed):
        failure = observed.resize_failure
        why = Judgement(True, failure.reason, failure.message) if failure else Judgement(True)
        made = make(RESIZE_IN_PROGRESS, why)
        generation = observed.resized_generation or pod.metadata.generation
        yield msgspec.structs.replace(made, observed_generation=generation)


def resize_events(pod: Pod, old: PodStatus, new: PodStatus) -> Iterator[StatusEvent]:
    before, after = _found(old, RESIZE_PENDING), _found(new, RESIZE_PENDING)
    if after and (before is None or (before.reason, before.message) != (after.reason, after.message)):
        text = _text(f"Pod resize {after.reason}", pod, after.observed_generation, after.message)
        yield StatusEvent(True, f"Resize{after.reason}", text)
    yield from _progress(pod, _found(old, RESIZE_IN_PROGRESS), _found(new, RESIZE_IN_PROGRESS))


def _progress(pod: Pod, before: PodCondition | None, after: PodCondition | None) -> Iterator[StatusEvent]:
    if after is None:
        if before is not None:
            generation = before.observed_generation
            yield StatusEvent(False, "ResizeCompleted", _text("Pod resize completed", pod, generation))
        return
    generation = after.observed_generation
    if before is None or before.observed_generation != generation:
        yield StatusEvent(False, "ResizeStarted", _text("Pod resize started", pod, generation))
    if after.reason == "Error" and (before is None or before.message != after.message):
        text = _text("Pod resize error", pod, generation, after.message)
        yield StatusEvent(True, "ResizeError", text)


def _found(status: PodStatus, kind: str) -> PodCondition | None:
    return next((condition for condition in status.conditions if condition.type == kind), None)


class _Share(Part):
    name: str = ""
    resources: ResourceRequirements | None = None


class _Summary(Part):
    init_containers: list[_Share] = []
    containers: list[_Share] = []
    generation: Int64 = 0
    error: str = ""


def _text(what: str, pod: Pod, generation: int, error: str = "") -> str:
    """With the resources the pod was given, as JSON."""
    summary = _Summary(
        init_containers=_shares(pod.spec.init_containers),
        containers=_shares(pod.spec.containers),
        generation=generation,
        error=error,
    )
    return f"{what}: {encode(summary).decode()}"


def _shares(containers: list[Container]) -> list[_Share]:
    return [_Share(name=container.name, resources=container.resources) for container in containers]
