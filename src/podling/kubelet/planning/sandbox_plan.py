"""Which sandbox the pod should have: whether the newest will do, and what leads to one that does
(R-INIT-4)."""

from __future__ import annotations

from podling.kubelet.container_types import NEVER, ContainerType, init_containers
from podling.kubelet.observed import ObservedPod
from podling.kubelet.planning.backoff import retry_at
from podling.kubelet.planning.draft import Draft
from podling.kubelet.planning.ending import DEFAULT_GRACE, Ending
from podling.kubelet.planning.restart import changed
from podling.kubelet.planning.teardown import tear_down
from podling.kubelet.pod_actions import CreateSandbox, RemoveSandbox, StopSandbox
from podling.model.gates import Gates
from podling.model.pod import Pod


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
