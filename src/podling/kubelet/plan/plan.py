"""What to do next for one pod: desired + observed + now → actions. Pure; R-INIT and R-EPH are decided here.

Read `plan` first. A pod that must end is torn down. A pod without a usable sandbox gets a new one (R-INIT-4).
Else its ephemeral containers, then its init containers in order, then all app containers at once are kept
running.

A teardown stops everything but sidecars at once, then sidecars from the last to the first, then the sandboxes
(R-INIT-6); each step is planned when the one before is seen to be done. preStop hooks of all containers begin
at once. Of each container the newest dead instance is kept (R-INIT-10), for its log, `logs --previous` and
lastState.
"""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.plan.containers import initialize, keep
from podling.kubelet.plan.draft import Draft
from podling.kubelet.plan.ending import DEFAULT_GRACE, MINIMUM_GRACE, Ending, deadline, ending
from podling.kubelet.plan.ephemeral import plan_ephemeral
from podling.kubelet.plan.past import with_past
from podling.kubelet.plan.resize import plan_resize
from podling.kubelet.plan.restart import changed, retry_at
from podling.kubelet.plan.rounds import end_earlier_round, in_round
from podling.kubelet.pod.actions import (
    BRINGS_UP,
    CreateSandbox,
    Finish,
    Plan,
    PreStop,
    RecordInitialized,
    RemoveContainer,
    RemoveSandbox,
    StopContainer,
    StopSandbox,
)
from podling.kubelet.pod.containers import NEVER, ContainerType, all_containers, init_containers
from podling.kubelet.pod.lifecycle import PodState, furthest
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.types.pod import Pod


def remove_dead(draft: Draft, pod: Pod) -> None:
    """Init containers first: theirs are the logs least likely to be asked for."""
    for _, container in all_containers(pod):
        dead = [instance for instance in draft.observed.instances(container.name) if instance.exited]
        for old in dead[1:]:
            draft.add(RemoveContainer(old.id, old.name))


def remove_all_dead(draft: Draft) -> None:
    """One by one, because a container's log goes with it."""
    for container in draft.observed.containers:
        draft.add(RemoveContainer(container.id, container.name))
    if not draft.observed.containers:
        for sandbox in draft.observed.sandboxes:
            draft.add(RemoveSandbox(sandbox.id))


def tear_down(draft: Draft, pod: Pod, end: Ending) -> bool:
    """Whether everything has stopped. Plans the next step otherwise."""
    alive = [c for c in draft.observed.containers if c.alive]
    turn = _turn(pod, alive)
    for container in alive:
        if container in turn:
            draft.add(_stop(container, end, draft.now))
        elif _has_pre_stop(pod, container) and container.id not in draft.observed.pre_stopped:
            draft.add(PreStop(container.id, container.name, end.grace_seconds))
    if not alive and not draft.observed.applying(*BRINGS_UP):
        for sandbox in draft.observed.sandboxes:
            if not sandbox.stopped:
                draft.add(StopSandbox(sandbox.id))
    return not alive and draft.quiet


def _turn(pod: Pod, alive: list[ObservedContainer]) -> list[ObservedContainer]:
    """The containers whose turn it is to be stopped."""
    others = [c for c in alive if c.type is not ContainerType.SIDECAR]
    if others or not alive:
        return others
    order = {c.name: index for index, c in enumerate(pod.spec.init_containers)}
    last = max(order.get(c.name, -1) for c in alive)
    return [c for c in alive if order.get(c.name, -1) == last]


def _has_pre_stop(pod: Pod, container: ObservedContainer) -> bool:
    return any(
        spec.lifecycle is not None and spec.lifecycle.pre_stop is not None
        for _, spec in all_containers(pod)
        if spec.name == container.name
    )


def _stop(container: ObservedContainer, end: Ending, now: datetime) -> StopContainer:
    grace = end.grace_seconds
    if container.type is ContainerType.SIDECAR and end.due:
        # The app containers had the grace first; a sidecar gets what they left of it.
        grace = min(grace, int((end.due - now).total_seconds()))
    return StopContainer(
        container.id,
        container.name,
        grace_seconds=max(grace, MINIMUM_GRACE),
        reason="Terminating",
        message=f"Stopping container {container.name}",
        pod_grace=end.grace_seconds,
    )


def needs_new_sandbox(pod: Pod, observed: ObservedPod, gates: Gates) -> bool:
    sandbox = observed.sandbox
    if sandbox is None or not sandbox.usable:
        return True
    return gates.enabled("InitContainerImageRestart") and _init_image_changed(pod, observed)


def _init_image_changed(pod: Pod, observed: ObservedPod) -> bool:
    """A pod that never restarts keeps what it has: running its init containers again would end it."""
    if pod.spec.restart_policy == NEVER:
        return False
    for kind, container in init_containers(pod):
        instance = observed.current(container.name) if kind is ContainerType.INIT else None
        if instance and changed(container, instance):
            return True
    return False


def replace_sandbox(draft: Draft, pod: Pod) -> None:
    """Stop what is left of the old one, then make a new one, in which everything begins anew."""
    grace = pod.spec.termination_grace_period_seconds
    if not tear_down(draft, pod, Ending(grace_seconds=DEFAULT_GRACE if grace is None else grace)):
        return
    failure = draft.observed.sandbox_failure
    retry = retry_at(failure) if failure else draft.now
    if draft.now < retry:
        draft.wake(retry)
        return
    attempts = [s.attempt for s in draft.observed.sandboxes]
    draft.add(CreateSandbox(max(attempts) + 1 if attempts else 0))


def clear_old_sandboxes(draft: Draft) -> None:
    """An old sandbox is stopped once, and kept as long as a container in it is kept for its log."""
    kept = {c.sandbox_id for c in draft.observed.containers}
    for sandbox in draft.observed.sandboxes[1:]:
        if not sandbox.stopped:
            draft.add(StopSandbox(sandbox.id))
        elif sandbox.id not in kept:
            draft.add(RemoveSandbox(sandbox.id))


def plan(pod: Pod, observed: ObservedPod, now: datetime, gates: Gates = DEFAULT_GATES) -> Plan:
    """The actions that may start now. `pod.status` is the newest status known of the pod: what this kubelet
    last made of it, else what the API has."""
    observed = with_past(pod, in_round(pod, observed))
    draft = Draft(observed, now)
    end = ending(pod, observed, now)
    if end:
        return _end(draft, pod, end)
    draft.wake(deadline(pod, observed))
    if needs_new_sandbox(pod, observed, gates):
        replace_sandbox(draft, pod)
    elif not observed.applying(CreateSandbox, StopSandbox):
        _run(draft, pod, gates)
    return draft.plan(PodState.SYNCING)


def _run(draft: Draft, pod: Pod, gates: Gates) -> None:
    plan_ephemeral(draft, pod, gates)
    if end_earlier_round(draft, pod):
        return
    if initialize(draft, pod):
        _record_initialized(draft, pod)
        for container in pod.spec.containers:
            keep(draft, pod, ContainerType.REGULAR, container)
    plan_resize(draft, pod)
    remove_dead(draft, pod)
    clear_old_sandboxes(draft)


def _record_initialized(draft: Draft, pod: Pod) -> None:
    sandbox = draft.observed.sandbox
    beginning = draft.observed.beginning
    if sandbox and pod.spec.init_containers and beginning not in draft.observed.initialized_sandboxes:
        draft.add(RecordInitialized(beginning))


def _end(draft: Draft, pod: Pod, end: Ending) -> Plan:
    if not tear_down(draft, pod, end):
        return draft.plan(furthest(PodState.TERMINATING, draft.observed.state))
    if not end.deleted and draft.observed.cleared:
        remove_all_dead(draft)
    elif not end.deleted:
        remove_dead(draft, pod)
        clear_old_sandboxes(draft)
    elif not _remove_all(draft):
        draft.add(Finish())
    return draft.plan(PodState.TERMINATED)


def _remove_all(draft: Draft) -> bool:
    """Whether anything of the pod is left in the runtime. A sandbox takes its containers with it."""
    sandboxes = {s.id for s in draft.observed.sandboxes}
    for sandbox_id in sandboxes:
        draft.add(RemoveSandbox(sandbox_id))
    orphans = [c for c in draft.observed.containers if c.sandbox_id not in sandboxes]
    for container in orphans:
        draft.add(RemoveContainer(container.id, container.name))
    return bool(sandboxes or orphans)
