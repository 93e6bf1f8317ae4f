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
    """Stop a sandbox and tear its network down. Also asked of a sandbox that is already dead, once per
    kubelet life."""

    id: str


class RemoveSandbox(msgspec.Struct, frozen=True):
    id: str


class StartContainer(msgspec.Struct, frozen=True):
    """Bring up a new instance: ensure the image, create, start (and postStart). `attempt` is the restart
    count, `crashes` the failures in a row before it; `target_id` the instance whose process namespace it
    joins, or ""; `round` the one it is made in (`rounds.py`)."""

    name: str
    type: ContainerType
    attempt: int = 0
    crashes: int = 0
    target_id: str = ""
    round: str = ""


class StopContainer(msgspec.Struct, frozen=True):
    """Stop an instance. `message` is the Killing event's; `restart` means a new instance must follow
    whatever its restart policy says: the worker keeps the id in `ObservedPod.restarting`. `pod_grace` is the
    pod's grace when this was decided: a deletion repeated with a shorter grace is a new action."""

    id: str
    name: str
    grace_seconds: int
    reason: str
    message: str
    restart: bool = False
    pod_grace: int = 0


class PreStop(msgspec.Struct, frozen=True):
    """Run the preStop hook of an instance whose turn to be stopped has not come."""

    id: str
    name: str
    grace_seconds: int


class RemoveContainer(msgspec.Struct, frozen=True):
    """Remove an instance that is not running. Its log goes with it."""

    id: str
    name: str


class RecordInitialized(msgspec.Struct, frozen=True):
    """Write down durably that every init container has done its work in this sandbox, or round of it
    (R-INIT-4). `sandbox_id` is `ObservedPod.beginning`."""

    sandbox_id: str


class ResizePod(msgspec.Struct, frozen=True):
    """Tell the pod's cgroup and its running containers what they may take now, as far as no container has to
    restart for it."""


class Finish(msgspec.Struct, frozen=True):
    """Nothing of a deleted pod is left in the runtime: give back the rest of the node and let the object
    go."""


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
    """`actions` may all be started at once. `wake_at` is the earliest time at which the plan
    would change by time alone. `state` is the part of its life the pod is in; in TERMINATING, starts still
    in flight should be given up; in TERMINATED nothing runs any more and volumes and cgroup can be given
    back."""

    state: PodState
    actions: tuple[Action, ...] = ()
    wake_at: datetime | None = None
