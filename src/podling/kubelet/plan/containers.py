"""What the containers of a running pod need next: initialization first, then keeping each container alive.
Pure.

Init containers run one at a time in order; sidecars start in order and keep running (R-INIT-1, 4, 6); volume
containers run before them, all together (R-VOL-1). A new sandbox begins at the first init container. In a
sandbox, initialization is complete when it is recorded so, when an app container lives, or when every init
container has succeeded.

A container is started, started again after its back-off, and replaced when its definition changed or a probe
gave it up (`keep`).
"""

from __future__ import annotations

from podling.kubelet.plan.draft import Draft
from podling.kubelet.plan.ending import DEFAULT_GRACE, MINIMUM_GRACE
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
from podling.kubelet.pod.actions import RecordInitialized, RemoveContainer, StartContainer, StopContainer
from podling.kubelet.pod.containers import NEVER, ContainerType, init_containers
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedPod
from podling.model.rules.resources import volume_container_names
from podling.model.types.container import Container
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus, PodStatus


def keep(draft: Draft, pod: Pod, kind: ContainerType, container: Container) -> None:
    """Plan what this container needs now, if anything: a start, a removal, a stop."""
    if draft.starting(container.name):
        return
    newest = draft.observed.newest(container.name)
    if newest is None or newest.exited:
        _start_again(draft, pod, kind, container, newest)
    elif newest.state is ContainerState.CREATED:
        # The kubelet died between create and start. Nothing ran: create it again, with the same attempt.
        draft.add(RemoveContainer(newest.id, newest.name))
    elif newest.lost:
        draft.add(
            _stop(pod, newest, "Unknown", f"Container {newest.name} is in unknown state", restart=False)
        )
    else:
        _replace_if_needed(draft, pod, kind, container, newest)


def _start_again(
    draft: Draft, pod: Pod, kind: ContainerType, container: Container, ended: ObservedContainer | None
) -> None:
    if not draft.observed.volumes_ready:
        return
    if ended and not _must_run_again(draft.observed, pod, kind, container, ended):
        return
    fresh = ended is None or _begins_afresh(draft.observed, kind, container, ended)
    failure = draft.observed.failures.get(container.name)
    # What the runtime made and could not start has ended, and waits as what has run and ended does.
    waits = [retry_at(failure)] if failure and not (ended and failure.instance == ended.id) else []
    if ended and not fresh:
        waits.append(restart_at(ended))
    at = max(waits, default=draft.now)
    if draft.now < at:
        draft.wake(at)
        return
    crashes = crashes_after(ended) if ended and not fresh else 0
    draft.add(
        StartContainer(
            container.name,
            kind,
            next_attempt(pod.status, draft.observed, container.name),
            crashes,
            round=draft.observed.round,
        )
    )


def _begins_afresh(
    observed: ObservedPod, kind: ContainerType, container: Container, ended: ObservedContainer
) -> bool:
    """Whether the next instance starts without back-off: the end was not its own failure. In a round, only
    the container that triggered the restart has failed by itself."""
    taken_along = observed.outdated(ended) and ended.id != observed.round
    done = kind is ContainerType.INIT and ended.succeeded
    return changed(container, ended) or taken_along or done or from_before(ended, observed)


def _must_run_again(
    observed: ObservedPod, pod: Pod, kind: ContainerType, container: Container, ended: ObservedContainer
) -> bool:
    """An init container of an earlier sandbox must, whatever became of it there; any other asks the
    policies."""
    elsewhere = observed.sandbox is not None and ended.sandbox_id != observed.sandbox.id
    if kind is ContainerType.INIT and elsewhere:
        return True
    return restarts(pod, container, kind, ended, observed)


def _replace_if_needed(
    draft: Draft, pod: Pod, kind: ContainerType, container: Container, running: ObservedContainer
) -> None:
    probe = draft.observed.probe(running)
    if changed(container, running) and kind is not ContainerType.INIT:
        message = f"Container {running.name} definition changed, will be restarted"
        draft.add(_stop(pod, running, "Changed", message, restart=True))
    elif restart_required(pod, container, running):
        message = f"Container {running.name} resize requires restart"
        draft.add(_stop(pod, running, "Resize", message, restart=True))
    elif not probe.alive:
        again = (
            kind is ContainerType.SIDECAR or (container.restart_policy or pod.spec.restart_policy) != NEVER
        )
        message = f"{probe.message}, will be restarted" if again else probe.message
        draft.add(_stop(pod, running, "Unhealthy", message, restart=again, grace=probe.grace_seconds))


def stop_after_failed_hook(pod: Pod, name: str, container_id: str) -> StopContainer:
    """The stop of a container whose postStart hook has failed."""
    grace = pod.spec.termination_grace_period_seconds
    seconds = DEFAULT_GRACE if grace is None else grace
    reason = "FailedPostStartHook"
    return StopContainer(
        container_id, name, max(seconds, MINIMUM_GRACE), reason, message=reason, pod_grace=seconds
    )


def _stop(
    pod: Pod,
    container: ObservedContainer,
    reason: str,
    message: str,
    *,
    restart: bool,
    grace: int | None = None,
) -> StopContainer:
    of_pod = pod.spec.termination_grace_period_seconds
    seconds = grace if grace is not None else DEFAULT_GRACE if of_pod is None else of_pod
    return StopContainer(
        container.id,
        container.name,
        grace_seconds=max(seconds, MINIMUM_GRACE),
        reason=reason,
        message=message,
        restart=restart,
        pod_grace=seconds,
    )


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
    lists = (status.container_statuses, status.init_container_statuses, status.ephemeral_container_statuses)
    return next((c for statuses in lists for c in statuses if c.name == name), None)


def counts_next(status: ContainerStatus) -> bool:
    """Whether the status already has the restart count of the next instance, as it has after a running
    instance was lost."""
    last = status.last_state.terminated
    return not status.container_id and last is not None and last.reason == STATUS_UNKNOWN


def has_run(status: ContainerStatus) -> bool:
    return bool(
        status.container_id or status.state.running or status.state.terminated or status.last_state.terminated
    )


def initialize(draft: Draft, pod: Pod) -> bool:
    """Whether app containers may run. Plans the next step of initialization, and what sidecars need, in any
    case."""
    done, together = initialized(pod, draft.observed), volume_container_names(pod.spec)
    waits = False
    for index, (kind, container) in enumerate(init_containers(pod)):
        if waits and container.name not in together:
            return False
        if kind is ContainerType.SIDECAR:
            keep(draft, pod, kind, container)
            passed = done or _sidecar_started(draft.observed, container)
        else:
            passed = _succeeded(draft.observed, container) or (done and not _runs(draft, container))
        if not passed and not _overtaken(draft, pod, index):
            if kind is ContainerType.INIT:
                keep(draft, pod, kind, container)
            waits = True
    return not waits


def initialized(pod: Pod, observed: ObservedPod) -> bool:
    """Whether it is already proven that initialization is over in the newest sandbox."""
    if not pod.spec.init_containers:
        return True
    if observed.sandbox and _recorded(observed, observed.beginning):
        return True
    return any(_begun(observed, c) for c in pod.spec.containers)


def _recorded(observed: ObservedPod, sandbox_id: str) -> bool:
    """Whether its record is written, or being written."""
    return sandbox_id in observed.initialized_sandboxes or RecordInitialized(sandbox_id) in observed.in_flight


def _begun(observed: ObservedPod, container: Container) -> bool:
    """Whether an app container lives or is being started: that was only asked for after initialization."""
    instance = observed.current(container.name)
    lives = instance is not None and not instance.exited
    return lives or observed.starting(container.name)


def _runs(draft: Draft, container: Container) -> bool:
    """Whether an init container is at work, be it needlessly: nothing may run beside it."""
    instance = draft.observed.current(container.name)
    return draft.starting(container.name) or (instance is not None and instance.running)


def _succeeded(observed: ObservedPod, container: Container) -> bool:
    instance = observed.current(container.name)
    return instance is not None and instance.succeeded


def _sidecar_started(observed: ObservedPod, container: Container) -> bool:
    instance = observed.current(container.name)
    return instance is not None and observed.started(instance)


def _overtaken(draft: Draft, pod: Pod, index: int) -> bool:
    """Whether a later init container was already begun in this sandbox. It could only be after this one had
    passed: this one was garbage-collected since, or is a sidecar that is being restarted; nothing waits for
    it again."""
    container = pod.spec.init_containers[index]
    if draft.observed.current(container.name) and container.restart_policy != "Always":
        return False
    later = [c.name for c in pod.spec.init_containers[index + 1 :]]
    together = volume_container_names(pod.spec)
    if container.name in together:
        later = [name for name in later if name not in together]
    return any(draft.observed.current(name) or draft.starting(name) for name in later)
