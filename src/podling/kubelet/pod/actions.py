"""What a plan may ask for, and the plan itself. A worker applies each action once; as long as it does, the
action is in flight, and the planner asks for nothing that this `covers`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.lifecycle import PodState


class CreateSandbox(msgspec.Struct, frozen=True):
    attempt: int


class StopSandbox(msgspec.Struct, frozen=True):
    """Stop a sandbox and tear its network down. A sandbox that is already dead is stopped once, too, by each
    kubelet that finds it."""

    id: str


class RemoveSandbox(msgspec.Struct, frozen=True):
    id: str


class StartContainer(msgspec.Struct, frozen=True):
    """Start a new instance: ensure the image, create, start, run postStart."""

    name: str
    type: ContainerType
    attempt: int = 0
    """The restart count."""
    crashes: int = 0
    """Consecutive failures before it (`plan/restart.py`)."""
    target_id: str = ""
    """Id of the container whose process namespace it joins, or ""."""
    round: str = ""
    """The restart generation it is made in (`plan/restart.py`)."""


class StopContainer(msgspec.Struct, frozen=True):
    """Stop an instance."""

    id: str
    name: str
    grace_seconds: int
    reason: str
    message: str
    """Of the Killing event."""
    restart: bool = False
    """A new instance must follow, whatever the restart policy says: the id goes to
    `ObservedPod.restarting`."""
    pod_grace: int = 0
    """The pod's grace period when this was decided: a deletion repeated with a shorter one is a new
    action."""


class PreStop(msgspec.Struct, frozen=True):
    """Run the preStop hook of an instance that will be stopped later (a sidecar)."""

    id: str
    name: str
    grace_seconds: int


class RemoveContainer(msgspec.Struct, frozen=True):
    """Remove an instance that is not running. Its log goes with it."""

    id: str
    name: str


class RecordInitialized(msgspec.Struct, frozen=True):
    """Record in the pod's directory that initialization is complete (R-INIT-4)."""

    sandbox_id: str
    """`ObservedPod.beginning`."""


class ResizePod(msgspec.Struct, frozen=True):
    """Actuate the allocated resources: write the pod's cgroup and update those running containers that need
    no restart for it."""


class Finish(msgspec.Struct, frozen=True):
    """Nothing of a deleted pod is left in the runtime: remove its files and cgroup, and end its worker."""


Action = (
    CreateSandbox
    | StopSandbox
    | RemoveSandbox
    | StartContainer
    | StopContainer
    | PreStop
    | RemoveContainer
    | RecordInitialized
    | ResizePod
    | Finish
)

BRINGS_UP = (CreateSandbox, StartContainer)
"""The kinds of action that bring a pod up."""


def covers(in_flight: Action, wanted: Action) -> bool:
    """Whether `wanted` is needless while `in_flight` is being applied: both are for the same thing.

    A stop does not cover one with less of the pod's grace, which ends the container sooner."""
    match in_flight, wanted:
        case CreateSandbox(), CreateSandbox():
            return True
        case StartContainer(name), StartContainer(other):
            return name == other
        case StopContainer(id), StopContainer(other):
            return id == other and in_flight.pod_grace <= wanted.pod_grace
        case PreStop(id), PreStop(other):
            return id == other
        case _:
            return in_flight == wanted


class Plan(msgspec.Struct, frozen=True):
    """What the worker does next."""

    state: PodState
    """The pod's state. In TERMINATING, starts in flight are given up. In TERMINATED nothing runs any more,
    and volumes and cgroup can be removed."""
    actions: tuple[Action, ...] = ()
    """To be started at once, in any order."""
    wake_at: datetime | None = None
    """The earliest time at which the plan changes though nothing else happens."""
