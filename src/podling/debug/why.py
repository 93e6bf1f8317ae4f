"""Why a pod is not ready: which step it stands at, what that step said last, and when each step was.

A pod goes through its steps in order: it gets a node, its init containers run one after the other, sidecars
stay, then its containers run together and become ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from podling.debug.container import status_of
from podling.model.rules.resources import is_sidecar
from podling.model.time import human_duration, parse_time
from podling.model.types.container import Container
from podling.model.types.core import Event
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStateTerminated, ContainerStatus

WIDTH = 40
"""Characters of a time line."""
MOST_EVENTS = 8
NEVER_FAILS = frozenset({"ContainerCreating", "PodInitializing", ""})


class Mark(StrEnum):
    """How a step stands."""

    DONE = "✓"
    NOW = "…"
    FAILED = "✗"
    LATER = "·"


class Step(msgspec.Struct, frozen=True):
    """`begin` and `end` are times of the API, empty if they are not known."""

    name: str
    mark: Mark
    said: str
    begin: str = ""
    end: str = ""


class Why(msgspec.Struct, frozen=True):
    """`verdict` is the one sentence; `log_of` the container whose last lines say more, and whether they are
    those of its run before."""

    verdict: str
    is_ready: bool
    steps: Sequence[Step]
    log_of: tuple[str, bool] | None = None


def why(pod: Pod) -> Why:
    steps = [_scheduled(pod), *_init_steps(pod), *(_app_step(pod, one) for one in pod.spec.containers)]
    name = pod.metadata.name
    if pod.metadata.deletion_timestamp:
        return Why(f"{name} is being deleted", False, steps)
    if pod.status.phase == "Succeeded":
        return Why(f"{name} has finished", False, steps)
    at = next((step for step in steps if step.mark in (Mark.FAILED, Mark.NOW)), None)
    if at is not None:
        return Why(f"{name} stands at {at.name}: {at.said}", False, steps, _log_of(pod, at))
    if lacking := _lacking_gates(pod):
        return Why(f"{name} waits for its readiness gates: {', '.join(lacking)}", False, steps)
    if pod.status.phase == "Failed":
        return Why(f"{name} has failed: {pod.status.message or pod.status.reason}", False, steps)
    if any(step.mark is Mark.LATER for step in steps):
        return Why(f"{name} waits for the kubelet of {pod.spec.node_name}", False, steps)
    return Why(f"{name} is ready", True, steps)


def _scheduled(pod: Pod) -> Step:
    begin = pod.metadata.creation_timestamp
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled":
            if condition.status == "True":
                return Step(
                    "schedule", Mark.DONE, pod.spec.node_name, begin, condition.last_transition_time or ""
                )
            return Step("schedule", Mark.NOW, condition.message or condition.reason, begin)
    if pod.spec.node_name:
        return Step("schedule", Mark.DONE, pod.spec.node_name, begin, pod.status.start_time)
    return Step("schedule", Mark.NOW, "nobody has looked for a node yet", begin)


def _init_steps(pod: Pod) -> Iterator[Step]:
    for container in pod.spec.init_containers:
        status = status_of(pod, container.name)
        if is_sidecar(container):
            yield _running_step(
                container, status, f"sidecar {container.name}", is_up=bool(status and status.started)
            )
            continue
        ended = status.state.terminated if status else None
        name = f"init {container.name}"
        if ended and ended.exit_code == 0:
            yield Step(name, Mark.DONE, "done", ended.started_at or "", ended.finished_at or "")
        else:
            yield _unfinished(name, status)


def _app_step(pod: Pod, container: Container) -> Step:
    status = status_of(pod, container.name)
    ended = status.state.terminated if status else None
    if ended and ended.exit_code == 0:
        return Step(container.name, Mark.DONE, "done", ended.started_at or "", ended.finished_at or "")
    return _running_step(container, status, container.name, is_up=bool(status and status.ready))


def _running_step(container: Container, status: ContainerStatus | None, name: str, *, is_up: bool) -> Step:
    running = status.state.running if status else None
    if status is None or running is None:
        return _unfinished(name, status)
    begin = running.started_at or ""
    restarts = f", restarted {status.restart_count} times" if status.restart_count else ""
    if is_up:
        return Step(name, Mark.DONE, f"ready{restarts}", begin)
    waits_for = "startup" if container.startup_probe and not status.started else "readiness"
    return Step(name, Mark.NOW, f"runs, and its {waits_for} probe has not succeeded{restarts}", begin)


def _unfinished(name: str, status: ContainerStatus | None) -> Step:
    """A container that neither runs nor has succeeded."""
    if status is None:
        return Step(name, Mark.LATER, "not yet")
    before = status.last_state.terminated
    if ended := status.state.terminated:
        return Step(name, Mark.FAILED, _exit(ended), ended.started_at or "", ended.finished_at or "")
    if running := status.state.running:
        return Step(name, Mark.NOW, "runs", running.started_at or "")
    waiting = status.state.waiting
    reason = waiting.reason if waiting else ""
    if reason in NEVER_FAILS and before is None:
        mark = Mark.NOW if reason == "ContainerCreating" else Mark.LATER
        return Step(name, mark, "being created" if mark is Mark.NOW else "not yet")
    said = f"{reason}: {waiting.message}" if waiting and waiting.message else reason
    if before is not None:
        said = f"{_exit(before)}; {reason or 'waits'}, restarted {status.restart_count} times"
    return Step(
        name, Mark.FAILED, said, (before and before.started_at) or "", (before and before.finished_at) or ""
    )


def _exit(ended: ContainerStateTerminated) -> str:
    how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
    said = f" ({ended.reason})" if ended.reason not in ("", "Error", "Completed") else ""
    return f"ended with {how}{said}" + (f": {ended.message.strip()}" if ended.message else "")


def _log_of(pod: Pod, step: Step) -> tuple[str, bool] | None:
    name = step.name.rpartition(" ")[2]
    status = status_of(pod, name)
    if status is None or (not status.container_id and status.last_state.terminated is None):
        return None
    return name, status.state.terminated is None and status.state.running is None


def _lacking_gates(pod: Pod) -> list[str]:
    true = {one.type for one in pod.status.conditions if one.status == "True"}
    return [gate.condition_type for gate in pod.spec.readiness_gates if gate.condition_type not in true]


def told(events: Sequence[Event], now: datetime) -> list[str]:
    """The last events, the newest last: how long ago, reason, message."""

    def at(event: Event) -> str:
        last = event.series.last_observed_time if event.series else None
        return last or event.last_timestamp or event.event_time or event.metadata.creation_timestamp

    lines = []
    for event in sorted(events, key=at)[-MOST_EVENTS:]:
        ago = human_duration((now - parse_time(at(event))).total_seconds())
        times = f" (x{event.count})" if event.count > 1 else ""
        lines.append(f"{ago:>6} ago  {event.reason}: {event.message.strip()}{times}")
    return lines


def time_line(steps: Sequence[Step], now: datetime, width: int = WIDTH) -> list[str]:
    """A line for each step: its mark and name, a bar from when to when it ran, how long, and what it says."""
    known = [parse_time(time) for step in steps for time in (step.begin, step.end) if time]
    if not known:
        return [f"{step.mark} {step.name}  {step.said}" for step in steps]
    first, last = min(known), max(now if _is_open(steps) else max(known), *known)
    whole = max((last - first).total_seconds(), 1.0)
    names = max(len(step.name) for step in steps)
    lines = []
    for step in steps:
        bar, took = " " * width, ""
        if step.begin:
            begin = parse_time(step.begin)
            end = parse_time(step.end) if step.end else last
            start = round((begin - first).total_seconds() / whole * (width - 1))
            length = max(1, round((end - begin).total_seconds() / whole * width))
            bar = (" " * start + "█" * min(length, width - start)).ljust(width)
            took = human_duration((end - begin).total_seconds())
        lines.append(f"{step.mark} {step.name:<{names}}  {bar}  {took:>6}  {step.said}".rstrip())
    return lines


def _is_open(steps: Sequence[Step]) -> bool:
    return any(step.begin and not step.end for step in steps)
