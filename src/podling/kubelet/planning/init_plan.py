"""Initialization: init containers one at a time in order, sidecars started in order and kept running
(R-INIT-1, 4, 6); before them the volume containers, all together (R-VOL-1).

What has been done is read from the newest sandbox alone: a new sandbox begins at the first init container.
Within it, initialization is known to be over by its record, by an app container that lives, or by every init
container's success.
"""

from __future__ import annotations

from podling.kubelet.container_types import ContainerType, init_containers
from podling.kubelet.observed import ObservedPod
from podling.kubelet.planning.container_plan import keep
from podling.kubelet.planning.draft import Draft
from podling.model.container import Container
from podling.model.pod import Pod
from podling.model.volume_containers import volume_container_names


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
    return sandbox_id in observed.initialized_sandboxes or f"initialized:{sandbox_id}" in observed.in_flight


def _begun(observed: ObservedPod, container: Container) -> bool:
    """Whether an app container lives or is being started: that was only asked for after initialization."""
    instance = observed.current(container.name)
    lives = instance is not None and not instance.exited
    return lives or f"start:{container.name}" in observed.in_flight


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
