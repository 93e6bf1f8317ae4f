"""What the containers of a running pod need next: initialization first, then keeping each container alive;
ephemeral ones at any time. Pure.

Init containers run one at a time in order; sidecars start in order and keep running (R-INIT-1, 4, 6); volume
containers run before them, all together (R-VOL-1). A new sandbox begins at the first init container. In a
sandbox, initialization is complete when it is recorded so, when an app container lives, or when every init
container has succeeded.

A container is started, started again after its back-off, and replaced when its definition changed or a probe
gave it up (`keep`).

An ephemeral container is started once, whatever state the rest of the pod is in (R-EPH-3). Where entries may
be removed (R-EPH-11, R-DBG-1), the container of a removed entry is stopped and its instance removed; then the
name can be used again. A new entry under that name is told from the old one by its definition, or by this
kubelet having stopped the instance for its removal.
"""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.plan.ending import MINIMUM_GRACE, grace_period
from podling.kubelet.plan.resize import restart_required
from podling.kubelet.plan.restart import (
    STATUS_UNKNOWN,
    changed,
    crashes_after,
    from_before,
    restart_at,
    restarts,
    retry_at,
)
from podling.kubelet.pod.actions import (
    BRINGS_UP,
    Action,
    Plan,
    RecordInitialized,
    RemoveContainer,
    StartContainer,
    StopContainer,
    StopSandbox,
    covers,
)
from podling.kubelet.pod.containers import NEVER, ContainerType, all_statuses, init_containers
from podling.kubelet.pod.lifecycle import PodState
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedPod
from podling.model.gates import Gates
from podling.model.rules.resources import volume_container_names
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus, PodStatus

REMOVING = ("DebugSubresource", "EphemeralContainerRemoval", "ExecEphemeralContainer")
"""The gates with any of which the API server allows to remove an ephemeral container's entry."""

_HOLDING = (*BRINGS_UP, StopContainer, StopSandbox)
"""The kinds of action during which a pod cannot be said to have stopped."""


class Draft:
    """A plan being made: collects actions and wake-up times, and leaves out what is already in flight."""

    def __init__(self, observed: ObservedPod, now: datetime) -> None:
        self.observed = observed
        self.now = now
        self._actions: list[Action] = []
        self._wakes: list[datetime] = []

    def add(self, action: Action) -> None:
        in_flight = self.observed.in_flight
        # The first question is the cheap one, and most often enough: many stops may be under way.
        if action not in in_flight and not any(covers(other, action) for other in in_flight):
            self._actions.append(action)

    def wake(self, at: datetime | None) -> None:
        if at and at > self.now:
            self._wakes.append(at)

    @property
    def quiet(self) -> bool:
        """Nothing is planned or under way that could still run or stop anything."""
        return not self._actions and not self.observed.applying(*_HOLDING)

    def plan(self, state: PodState) -> Plan:
        return Plan(state, tuple(self._actions), min(self._wakes, default=None))


def initialize(draft: Draft, pod: Pod) -> bool:
    """Whether app containers may run. Plans the next step of initialization, and what sidecars need, in any
    case."""
    done, together = initialized(pod, draft.observed), volume_container_names(pod.spec)
    waits = False
    for index, (kind, container) in enumerate(init_containers(pod)):
        if waits and container.name not in together:
            return False
        instance = draft.observed.current.get(container.name)
        if kind is ContainerType.SIDECAR:
            keep(draft, pod, kind, container)
            passed = done or (instance is not None and draft.observed.started(instance))
        else:
            # While an init container is at work, be it needlessly, nothing may run beside it.
            runs = container.name in draft.observed.starts or (instance is not None and instance.running)
            passed = (instance is not None and instance.succeeded) or (done and not runs)
        if not passed and not _overtaken(draft, pod, index):
            if kind is ContainerType.INIT:
                keep(draft, pod, kind, container)
            waits = True
    return not waits


def _overtaken(draft: Draft, pod: Pod, index: int) -> bool:
    """Whether a later init container was already begun in this sandbox. It could only be after this one had
    passed: this one was garbage-collected since, or is a sidecar that is being restarted; nothing waits for
    it again."""
    container = pod.spec.init_containers[index]
    if draft.observed.current.get(container.name) and container.restart_policy != "Always":
        return False
    later = [c.name for c in pod.spec.init_containers[index + 1 :]]
    together = volume_container_names(pod.spec)
    if container.name in together:
        later = [name for name in later if name not in together]
    return any(draft.observed.current.get(name) or name in draft.observed.starts for name in later)


def initialized(pod: Pod, observed: ObservedPod) -> bool:
    """Whether it is already proven that initialization is over in the newest sandbox."""
    if not pod.spec.init_containers:
        return True
    done = RecordInitialized(observed.beginning)
    if observed.sandbox and (done.sandbox_id in observed.initialized_sandboxes or done in observed.in_flight):
        return True
    for container in pod.spec.containers:
        # An app container was only asked for after initialization.
        instance = observed.current.get(container.name)
        if container.name in observed.starts or (instance is not None and not instance.exited):
            return True
    return False


def keep(draft: Draft, pod: Pod, kind: ContainerType, container: Container) -> None:
    """Plan what this container needs now, if anything: a start, a removal, a stop."""
    if container.name in draft.observed.starts:
        return
    newest = draft.observed.newest.get(container.name)
    if newest is None or newest.exited:
        _start_again(draft, pod, kind, container, newest)
        return
    probe = draft.observed.probe(newest)
    if newest.state is ContainerState.CREATED:
        # The kubelet died between create and start. Nothing ran: create it again, with the same attempt.
        draft.add(RemoveContainer(newest.id, newest.name))
    elif newest.lost:
        message = f"Container {newest.name} is in unknown state"
        draft.add(stop_container(pod, newest.id, newest.name, "Unknown", message))
    elif changed(container, newest) and kind is not ContainerType.INIT:
        message = f"Container {newest.name} definition changed, will be restarted"
        draft.add(stop_container(pod, newest.id, newest.name, "Changed", message, restart=True))
    elif restart_required(pod, container, newest):
        message = f"Container {newest.name} resize requires restart"
        draft.add(stop_container(pod, newest.id, newest.name, "Resize", message, restart=True))
    elif not probe.alive:
        policy = container.restart_policy or pod.spec.restart_policy
        again = kind is ContainerType.SIDECAR or policy != NEVER
        message = f"Container {newest.name} {probe.message}"
        if kind is ContainerType.SIDECAR:
            message = f"Init container {newest.name} {probe.message}"
        elif again:
            message += ", will be restarted"
        grace = probe.grace_seconds
        draft.add(
            stop_container(pod, newest.id, newest.name, "Unhealthy", message, restart=again, grace=grace)
        )


def _start_again(
    draft: Draft, pod: Pod, kind: ContainerType, container: Container, ended: ObservedContainer | None
) -> None:
    observed = draft.observed
    if not observed.volumes_ready:
        return
    own_failure = False
    if ended:
        # An init container of an earlier sandbox runs again, whatever became of it there.
        elsewhere = observed.sandbox is not None and ended.sandbox_id != observed.sandbox.id
        anew = kind is ContainerType.INIT and elsewhere
        if not (anew or restarts(pod, container, kind, ended, observed)):
            return
        # In a round, only the container that triggered the restart has failed by itself.
        taken_along = observed.outdated(ended) and ended.id != observed.round
        done = kind is ContainerType.INIT and ended.succeeded
        own_failure = not (changed(container, ended) or taken_along or done or from_before(ended, observed))
    failure = observed.failures.get(container.name)
    # What the runtime made and could not start has ended, and waits as what has run and ended does.
    waits = [retry_at(failure)] if failure and not (ended and failure.instance == ended.id) else []
    if ended and own_failure:
        waits.append(restart_at(ended))
    at = max(waits, default=draft.now)
    if draft.now < at:
        draft.wake(at)
        return
    crashes = crashes_after(ended) if ended and own_failure else 0
    attempt = next_attempt(pod.status, observed, container.name)
    draft.add(StartContainer(container.name, kind, attempt, crashes, round=observed.round))


def stop_container(
    pod: Pod,
    id: str,
    name: str,
    reason: str,
    message: str,
    *,
    restart: bool = False,
    grace: int | None = None,
) -> StopContainer:
    """The stop of one instance, within `grace` seconds, or those of its pod."""
    seconds = grace_period(pod) if grace is None else grace
    return StopContainer(id, name, max(seconds, MINIMUM_GRACE), reason, message, restart, pod_grace=seconds)


def next_attempt(status: PodStatus, observed: ObservedPod, name: str) -> int:
    """The restart count of the next instance: one more than any known, from the runtime or from the
    status."""
    known = [c.attempt for c in observed.containers if c.name == name]
    past = recorded(status, name)
    if past and has_run(past):
        known.append(past.restart_count - counts_next(past))
    return max(known) + 1 if known else 0


def recorded(status: PodStatus, name: str) -> ContainerStatus | None:
    """The container's status in the pod's status."""
    return next((c for c in all_statuses(status) if c.name == name), None)


def counts_next(status: ContainerStatus) -> bool:
    """Whether the status already has the restart count of the next instance, as it has after a running
    instance was lost."""
    last = status.last_state.terminated
    return not status.container_id and last is not None and last.reason == STATUS_UNKNOWN


def has_run(status: ContainerStatus) -> bool:
    """Whether the status tells of any instance."""
    return bool(
        status.container_id or status.state.running or status.state.terminated or status.last_state.terminated
    )


def plan_ephemeral(draft: Draft, pod: Pod, gates: Gates) -> None:
    """Plan what the ephemeral containers need now."""
    observed = draft.observed
    left = any(instance.type is ContainerType.EPHEMERAL for instance in observed.containers)
    if not (left or pod.spec.ephemeral_containers):
        return
    removing = any(gates.enabled(name) for name in REMOVING)
    for container in pod.spec.ephemeral_containers if gates.enabled("EphemeralContainers") else ():
        newest = observed.newest.get(container.name)
        if newest is None:
            _start_ephemeral(draft, container, attempt=0)
            continue
        # An entry cannot be changed, so an instance with another definition was another entry's; and what was
        # stopped or is being let go was found without one.
        leaving = RemoveContainer(newest.id, newest.name) in observed.in_flight
        if removing and (leaving or newest.id in observed.restarting or changed(container, newest)):
            if newest.exited:
                _start_ephemeral(draft, container, attempt=newest.attempt + 1)
            else:
                _end_ephemeral(draft, pod, newest)
        elif newest.state is ContainerState.CREATED and container.name not in draft.observed.starts:
            # Created and never started: whoever made it died before it ran, so its one start is still to
            # come.
            draft.add(RemoveContainer(newest.id, newest.name))
    if removing:
        wanted = {container.name for container in pod.spec.ephemeral_containers}
        for instance in observed.containers:
            if instance.type is ContainerType.EPHEMERAL and instance.name not in wanted:
                _end_ephemeral(draft, pod, instance)


def _start_ephemeral(draft: Draft, container: EphemeralContainer, attempt: int) -> None:
    observed = draft.observed
    if container.name in draft.observed.starts or not observed.volumes_ready:
        return
    target = target_of(container, observed)
    if container.target_container_name and target is None:
        return
    failure = observed.failures.get(container.name)
    at: datetime = retry_at(failure) if failure else draft.now
    if draft.now < at:
        draft.wake(at)
    else:
        joined = target.id if target else ""
        draft.add(StartContainer(container.name, ContainerType.EPHEMERAL, attempt, target_id=joined))


def target_of(container: EphemeralContainer, observed: ObservedPod) -> ObservedContainer | None:
    """The running instance whose process namespace the container joins (R-EPH-4); None if it names none, or
    that does not run."""
    target = observed.current.get(container.target_container_name)
    return target if target and target.running else None


def _end_ephemeral(draft: Draft, pod: Pod, instance: ObservedContainer) -> None:
    """Stop or remove an instance without an entry. A start in flight is waited for; its instance is next."""
    if instance.name in draft.observed.starts:
        return
    if instance.alive:
        message = f"Stopping container {instance.name}"
        draft.add(stop_container(pod, instance.id, instance.name, "Removed", message, restart=True))
    else:
        draft.add(RemoveContainer(instance.id, instance.name))
