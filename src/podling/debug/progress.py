"""What a container that shall run waits for, in one line; that it runs; or that and why it never will."""

from __future__ import annotations

from typing import NamedTuple

from podling.debug.container import all_containers, status_of
from podling.model.types.pod import Pod

FINISHED = frozenset({"Succeeded", "Failed"})
HOPELESS = frozenset(
    {"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "RunContainerError"}
)
"""Reasons to wait that no waiting ends: an ephemeral container is not started a second time."""


class Waiting(NamedTuple):
    line: str


class Running(NamedTuple):
    pass


class Over(NamedTuple):
    """The container has ended; of one that never ran `reason` says why."""

    exit_code: int
    reason: str
    message: str


class Never(NamedTuple):
    """It will not run; `line` says why."""

    line: str


class NoContainer(Exception):
    """The container does not run; the message says why."""


class TooLate(NoContainer):
    """Not within the time given."""


Progress = Waiting | Running | Over | Never


def progress(pod: Pod, name: str, event: str = "") -> Progress:
    """`event` is the last message of an event about the container, such as of a pull that has begun."""
    status = status_of(pod, name)
    state = status.state if status else None
    if state and state.terminated:
        ended = state.terminated
        return Over(ended.exit_code, ended.reason, ended.message)
    if state and state.running:
        return Running()
    if pod.status.phase in FINISHED:
        return Never(
            f"pod {pod.metadata.name} has finished ({pod.status.phase}): nothing runs in it any more"
        )
    if pod.metadata.deletion_timestamp:
        return Never(f"pod {pod.metadata.name} is being deleted")
    if not pod.spec.node_name:
        return Waiting(f"pod {pod.metadata.name} has no node yet{_scheduling(pod)}")
    waiting = state.waiting if state else None
    if waiting is None or waiting.reason in ("ContainerCreating", "PodInitializing"):
        return Waiting(event or "waiting for the kubelet")
    before = status.last_state.terminated if status else None
    if waiting.reason == "CrashLoopBackOff" and before:
        return Over(before.exit_code, before.reason, before.message)
    said = f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
    return Never(said) if waiting.reason in HOPELESS else Waiting(said)


def may_be_joined(pod: Pod, name: str) -> bool:
    """Whether the pod has a container of this name that runs, or will: a kubelet may not have told of it
    yet."""
    is_there = any(container.name == name for container in all_containers(pod))
    return is_there and isinstance(progress(pod, name), Waiting | Running)


def _scheduling(pod: Pod) -> str:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status != "True" and condition.message:
            return f": {condition.message}"
    return ""
