"""What a plan may ask for, and the plan itself. A worker applies each action once; `key` names it while it
is in flight.

A container's actions share the name or id of the container in their key, so that the planner can ask "is
anything happening to it?" of nothing but a set of strings.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from podling.kubelet.pod.containers import ContainerType
from podling.kubelet.pod.lifecycle import PodState

BRINGS_UP = ("create-sandbox", "start:")
"""How the keys of the actions begin that bring a pod up."""


class CreateSandbox(msgspec.Struct, frozen=True):
    attempt: int

    @property
    def key(self) -> str:
        return "create-sandbox"


class StopSandbox(msgspec.Struct, frozen=True):
    """Stop a sandbox and tear its network down. Also asked of a sandbox that is already dead, once per
    kubelet life."""

    id: str

    @property
    def key(self) -> str:
        return f"stop-sandbox:{self.id}"


class RemoveSandbox(msgspec.Struct, frozen=True):
    id: str

    @property
    def key(self) -> str:
        return f"remove-sandbox:{self.id}"


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

    @property
    def key(self) -> str:
        return f"start:{self.name}"


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

    @property
    def key(self) -> str:
        return f"stop:{self.id}:{self.pod_grace}"


class PreStop(msgspec.Struct, frozen=True):
    """Run the preStop hook of an instance whose turn to be stopped has not come."""

    id: str
    name: str
    grace_seconds: int

    @property
    def key(self) -> str:
        return f"pre-stop:{self.id}"


class RemoveContainer(msgspec.Struct, frozen=True):
    """Remove an instance that is not running. Its log goes with it."""

    id: str
    name: str

    @property
    def key(self) -> str:
        return f"remove:{self.id}"


class RecordInitialized(msgspec.Struct, frozen=True):
    """Write down durably that every init container has done its work in this sandbox, or round of it
    (R-INIT-4). `sandbox_id` is `ObservedPod.beginning`."""

    sandbox_id: str

    @property
    def key(self) -> str:
        return f"initialized:{self.sandbox_id}"


class ResizePod(msgspec.Struct, frozen=True):
    """Tell the pod's cgroup and its running containers what they may take now, as far as no container has to
    restart for it."""

    @property
    def key(self) -> str:
        return "resize"


class Finish(msgspec.Struct, frozen=True):
    """Nothing of a deleted pod is left in the runtime: give back the rest of the node and let the object
    go."""

    @property
    def key(self) -> str:
        return "finish"


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


class Plan(msgspec.Struct, frozen=True):
    """`actions` may all be started at once. `wake_at` is the earliest time at which the plan
    would change by time alone. `state` is the part of its life the pod is in; in TERMINATING, starts still
    in flight should be given up; in TERMINATED nothing runs any more and volumes and cgroup can be given
    back."""

    state: PodState
    actions: tuple[Action, ...] = ()
    wake_at: datetime | None = None
