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

from podling.kubelet.plan.containers import Draft, initialize, keep, plan_ephemeral
from podling.kubelet.plan.ending import MINIMUM_GRACE, Ending, deadline, ending, grace_period
from podling.kubelet.plan.resize import limits_meanwhile, restart_required, unactuated
from podling.kubelet.plan.restart import changed, in_round, of_sandbox, retry_at, with_past
from podling.kubelet.pod.actions import (
    BRINGS_UP,
    CreateSandbox,
    Finish,
    Plan,
    PreStop,
    RecordInitialized,
    RemoveContainer,
    RemoveSandbox,
    ResizePod,
    StopContainer,
    StopSandbox,
)
from podling.kubelet.pod.containers import NEVER, ContainerType, all_containers, init_containers
from podling.kubelet.pod.lifecycle import PodState, furthest
from podling.kubelet.pod.observed import ObservedPod
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.types.pod import Pod


def plan(pod: Pod, observed: ObservedPod, now: datetime, gates: Gates = DEFAULT_GATES) -> Plan:
    """The actions that may start now (Kubernetes' `computePodActions`). `pod.status` is the newest status
    known of the pod: what this kubelet last made of it, else what the API has."""
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
        # Recorded before the first app container runs: without the record the next kubelet would have to run
        # the init containers again when their instances are gone.
        beginning, recorded = draft.observed.beginning, draft.observed.initialized_sandboxes
        if pod.spec.init_containers and beginning not in recorded:
            draft.add(RecordInitialized(beginning))
        for container in pod.spec.containers:
            keep(draft, pod, ContainerType.REGULAR, container)
    plan_resize(draft, pod)
    remove_dead(draft, pod)
    clear_old_sandboxes(draft)


def _end(draft: Draft, pod: Pod, end: Ending) -> Plan:
    observed = draft.observed
    if not tear_down(draft, pod, end):
        return draft.plan(furthest(PodState.TERMINATING, observed.state))
    if end.deleted:
        # Everything goes. A sandbox takes its containers with it.
        sandboxes = {sandbox.id for sandbox in observed.sandboxes}
        orphans = [c for c in observed.containers if c.sandbox_id not in sandboxes]
        for sandbox_id in sandboxes:
            draft.add(RemoveSandbox(sandbox_id))
        for container in orphans:
            draft.add(RemoveContainer(container.id, container.name))
        if not (sandboxes or orphans):
            draft.add(Finish())
    elif observed.cleared:
        # One by one, because a container's log goes with it.
        for container in observed.containers:
            draft.add(RemoveContainer(container.id, container.name))
        for sandbox in observed.sandboxes if not observed.containers else ():
            draft.add(RemoveSandbox(sandbox.id))
    else:
        remove_dead(draft, pod)
        clear_old_sandboxes(draft)
    return draft.plan(PodState.TERMINATED)


def plan_stop(pod: Pod, observed: ObservedPod, now: datetime, end: Ending) -> Plan:
    """The actions that may start now as the node stops: what runs ends in its order, and is kept for the
    kubelet that comes next. TERMINATED once nothing runs."""
    draft = Draft(observed, now)
    done = tear_down(draft, pod, end)
    return draft.plan(PodState.TERMINATED if done else PodState.TERMINATING)


def needs_new_sandbox(pod: Pod, observed: ObservedPod, gates: Gates) -> bool:
    """Whether there is no usable one, or, behind its gate, the image of an init container was changed."""
    sandbox = observed.sandbox
    if sandbox is None or not sandbox.usable:
        return True
    if pod.spec.restart_policy == NEVER or not gates.enabled("InitContainerImageRestart"):
        # A pod that never restarts keeps what it has: running its init containers again would end it.
        return False
    inits = (
        (c, observed.current.get(c.name)) for kind, c in init_containers(pod) if kind is ContainerType.INIT
    )
    return any(instance is not None and changed(container, instance) for container, instance in inits)


def replace_sandbox(draft: Draft, pod: Pod) -> None:
    """Stop what is left of the old one, then make a new one, in which everything begins anew."""
    if not tear_down(draft, pod, Ending(grace_seconds=grace_period(pod))):
        return
    failure = draft.observed.sandbox_failure
    retry = retry_at(failure) if failure else draft.now
    if draft.now < retry:
        draft.wake(retry)
        return
    attempts = [s.attempt for s in draft.observed.sandboxes]
    draft.add(CreateSandbox(max(attempts) + 1 if attempts else 0))


def tear_down(draft: Draft, pod: Pod, end: Ending) -> bool:
    """Whether everything has stopped. Plans the next step otherwise."""
    alive = [c for c in draft.observed.containers if c.alive]
    turn = [c for c in alive if c.type is not ContainerType.SIDECAR]
    if alive and not turn:
        # Only sidecars are left: the last one of the spec is next.
        order = {c.name: index for index, c in enumerate(pod.spec.init_containers)}
        last = max(order.get(c.name, -1) for c in alive)
        turn = [c for c in alive if order.get(c.name, -1) == last]
    # Who is stopped later begins with its preStop hook now.
    hooked = {c.name for _, c in all_containers(pod) if c.lifecycle is not None and c.lifecycle.pre_stop}
    for container in alive:
        if container in turn:
            grace = end.grace_seconds
            if container.type is ContainerType.SIDECAR and end.due:
                # The app containers had the grace first; a sidecar gets what they left of it.
                grace = min(grace, int((end.due - draft.now).total_seconds()))
            draft.add(
                StopContainer(
                    container.id,
                    container.name,
                    grace_seconds=max(grace, MINIMUM_GRACE),
                    reason="Terminating",
                    message=f"Stopping container {container.name}",
                    pod_grace=end.grace_seconds,
                )
            )
        elif container.name in hooked and container.id not in draft.observed.pre_stopped:
            draft.add(PreStop(container.id, container.name, end.grace_seconds))
    if not alive and not draft.observed.applying(*BRINGS_UP):
        for sandbox in draft.observed.sandboxes:
            if not sandbox.stopped:
                draft.add(StopSandbox(sandbox.id))
    return not alive and draft.quiet


def end_earlier_round(draft: Draft, pod: Pod) -> bool:
    """Plan the stop of containers of an earlier round (RestartAllContainers), without grace. True while any
    is left or being started."""
    observed = draft.observed
    left = [c for c in of_sandbox(observed) if c.alive and observed.outdated(c)]
    for container in left:
        draft.add(
            StopContainer(
                container.id,
                container.name,
                grace_seconds=0,
                reason="RestartAllContainers",
                message=f"Stopping container {container.name}",
                restart=True,
            )
        )
    # While no instance of this round exists, a start in flight was planned in an earlier round.
    begun = any(not observed.outdated(c) for c in of_sandbox(observed))
    starting = any(c.name in observed.starts for c in (*pod.spec.init_containers, *pod.spec.containers))
    return bool(left) or (bool(observed.round) and not begun and starting)


def plan_resize(draft: Draft, pod: Pod) -> None:
    """Plan to actuate what is allocated, unless all that differs waits for restarts."""
    observed = draft.observed
    differing = list(unactuated(pod, observed))
    if not any(not restart_required(pod, container, running) for container, running in differing):
        restart_awaited = differing and limits_meanwhile(pod, observed) == observed.pod_limits
        if observed.limits_settled or restart_awaited:
            return
    failure = observed.resize_failure
    at = retry_at(failure) if failure else draft.now
    if draft.now < at:
        draft.wake(at)
    else:
        draft.add(ResizePod())


def remove_dead(draft: Draft, pod: Pod) -> None:
    """Remove dead instances but the newest of each container, those of init containers first: theirs are the
    logs least likely to be asked for."""
    for _, container in all_containers(pod):
        dead = [instance for instance in draft.observed.instances(container.name) if instance.exited]
        for old in dead[1:]:
            draft.add(RemoveContainer(old.id, old.name))


def clear_old_sandboxes(draft: Draft) -> None:
    """An old sandbox is stopped once, and kept as long as a container in it is kept for its log."""
    kept = {c.sandbox_id for c in draft.observed.containers}
    for sandbox in draft.observed.sandboxes[1:]:
        if not sandbox.stopped:
            draft.add(StopSandbox(sandbox.id))
        elif sandbox.id not in kept:
            draft.add(RemoveSandbox(sandbox.id))
