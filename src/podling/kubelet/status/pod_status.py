"""The PodStatus, with its phase, from what is observed; and the events that follow from a change of status,
and not from an action of the kubelet. Pure.

`pod.status` is the newest known status. Times, restart counts, addresses and terminal phases are carried over
from it, so passing the result in again changes nothing. Ephemeral containers do not count for the phase
(R-EPH-3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from podling.kubelet.cri_config.environment import field_path
from podling.kubelet.plan.ending import DEADLINE_EXCEEDED, FAILED, SUCCEEDED, Ending, ending
from podling.kubelet.plan.resize import shown_resources, whole
from podling.kubelet.plan.restart import in_round, policy_restarts, with_past
from podling.kubelet.pod.containers import ContainerType, all_containers, all_statuses, init_containers
from podling.kubelet.pod.observed import ObservedPod
from podling.kubelet.status.conditions import RESIZE_IN_PROGRESS, RESIZE_PENDING, Facts, pod_conditions
from podling.kubelet.status.container_status import StatusInputs, container_statuses
from podling.model.codec.fields import Int64, Part
from podling.model.codec.json import encode
from podling.model.gates import Gates
from podling.model.rules.resources import qos_class
from podling.model.rules.status import TERMINAL
from podling.model.time import rfc3339
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod
from podling.model.types.pod_status import (
    ContainerStateTerminated,
    ContainerStatus,
    HostIP,
    PodCondition,
    PodIP,
    PodStatus,
)

PENDING = "Pending"
RUNNING = "Running"
GATE = "EphemeralContainers"


def pod_status(pod: Pod, observed: ObservedPod, now: datetime, host_ips: Sequence[str] = ()) -> PodStatus:
    """The whole status (Kubernetes' `generateAPIPodStatus`). `host_ips` are the node's addresses."""
    observed = with_past(pod, in_round(pod, observed))
    end, told = ending(pod, observed, now), observed.termination
    over = end is not None and not (observed.starts or any(c.alive for c in observed.containers))
    at = StatusInputs(pod, observed, now, ending=end is not None, over=over)
    init, apps, debug = container_statuses(at)
    status = replace(
        pod.status,
        observed_generation=pod.metadata.generation,
        start_time=pod.status.start_time or rfc3339(observed.started_at or now),
        ephemeral_container_statuses=sorted(debug, key=_name),
        qos_class=pod.status.qos_class or qos_class(pod),
    )
    if end and end.phase and told and not (observed.sandboxes or pod.status.container_statuses):
        # The node refused the pod: nothing was created, and no container has a status.
        return replace(status, phase=end.phase, reason=end.reason, message=end.message)
    statuses = {s.name: s for s in (*init, *apps)}
    if over:
        begun = any(s.state.running or s.state.terminated or s.last_state.terminated for s in apps)
    else:
        begun = any(observed.current.get(container.name) for container in pod.spec.containers)
    phase = pod_phase(pod, statuses, end, over=over, begun=begun)
    # Reason and message go with the phase: a new one has its own, an old one keeps them.
    reason, message = (end.reason, end.message) if end and over else ("", "")
    if phase == pod.status.phase:
        reason, message = pod.status.reason, pod.status.message
    # One that came too late has ended without an instance.
    debugged = any(s.state.running or (s.state.terminated and s.state.terminated.container_id) for s in debug)
    facts = Facts(phase, statuses, begun, debugged)
    # Kubernetes makes the sandbox once the volumes are set up, and tells its addresses then. They stay in the
    # status after it is gone: clients ask for those of completed pods.
    given = observed.ips if observed.is_prepared else ()
    pod_ips = list(given) or [ip.ip for ip in pod.status.pod_ips]
    if pod.spec.host_network:
        pod_ips = list(host_ips) if observed.sandbox else []
    allocated = whole(pod)
    return replace(
        status,
        phase=phase,
        reason=reason,
        message=message,
        conditions=pod_conditions(pod, observed, facts, now),
        host_ip=host_ips[0] if host_ips else pod.status.host_ip,
        host_ips=[HostIP(ip=ip) for ip in host_ips] or pod.status.host_ips,
        pod_ip=pod_ips[0] if pod_ips else "",
        pod_ips=[PodIP(ip=ip) for ip in pod_ips],
        init_container_statuses=init,
        container_statuses=sorted(apps, key=_name),
        resources=shown_resources(pod, observed, allocated, running=phase == RUNNING),
        allocated_resources=allocated.requests,
    )


def _name(status: ContainerStatus) -> str:
    return status.name


def pod_phase(
    pod: Pod, statuses: Mapping[str, ContainerStatus], end: Ending | None, *, over: bool, begun: bool
) -> str:
    """The phase. `statuses` by container name; `over`: no container runs or is restarted; `begun`: app
    containers have been created. A terminal phase never changes, and comes only after the last container of
    any type has stopped."""
    if pod.status.phase in TERMINAL:
        return pod.status.phase
    phase = phase_of_containers(pod, statuses, over=over, begun=begun)
    if not over:
        return phase if phase not in TERMINAL else pod.status.phase or (RUNNING if begun else PENDING)
    if end and end.phase:
        return end.phase
    return phase if phase in TERMINAL else FAILED


def phase_of_containers(pod: Pod, statuses: Mapping[str, ContainerStatus], *, over: bool, begun: bool) -> str:
    """The phase that the containers alone would give (Kubernetes' `getPhase`). Failed when an init container
    has failed for good; Pending while a container is still to begin, or a sidecar has not started; Running
    while one runs or will be restarted."""
    waits = starts = runs = failed = False
    for kind, container in init_containers(pod):
        status = statuses[container.name]
        ended = _ended(status)
        if kind is ContainerType.SIDECAR:
            runs |= status.state.running is not None
            starts |= status.state.running is not None and not status.started
            waits |= status.state.running is None and ended is None
        elif ended is None:
            waits = True
        elif ended.exit_code and not policy_restarts(pod, container, kind, ended.exit_code):
            return FAILED
    for container in pod.spec.containers:
        status = statuses[container.name]
        ended = _ended(status)
        if status.state.running:
            runs = True
        elif ended is None:
            waits = True
        elif not over and policy_restarts(pod, container, ContainerType.REGULAR, ended.exit_code):
            runs = True
        else:
            failed |= ended.exit_code != 0
    if waits or (starts and not begun):
        return PENDING
    if runs:
        return RUNNING
    return FAILED if failed else SUCCEEDED


def _ended(status: ContainerStatus) -> ContainerStateTerminated | None:
    """How it ended, now or before what it now waits for."""
    return status.state.terminated or (status.last_state.terminated if not status.state.running else None)


class StatusEvent(NamedTuple):
    """An event of a pod; `field_path` names the container it is about."""

    warning: bool
    reason: str
    message: str
    field_path: str = ""


def status_events(pod: Pod, old: PodStatus, new: PodStatus, gates: Gates) -> Iterator[StatusEvent]:
    """The events of the change from `old` to `new`."""
    if new.reason == DEADLINE_EXCEEDED and old.reason != new.reason:
        yield StatusEvent(False, new.reason, new.message)
    yield from resize_events(pod, old, new)
    known = {status.name for status in old.ephemeral_container_statuses}
    for status in new.ephemeral_container_statuses if not gates.enabled(GATE) else ():
        # Once for each, when it is seen first: the API server, whose gate is on, has taken it (R-EPH-14).
        if status.name not in known and status.state.waiting:
            message = (
                f"Ephemeral container {status.name} is not started: the kubelet's feature gate {GATE} is off"
            )
            path = field_path(ContainerType.EPHEMERAL, status.name)
            yield StatusEvent(True, "FeatureGateDisabled", message, path)
    before = {status.name: _waiting(status) for status in all_statuses(old)}
    states = {status.name: _waiting(status) for status in all_statuses(new)}
    meta = pod.metadata
    for kind, container in all_containers(pod):
        reason = states.get(container.name, "")
        if reason == before.get(container.name, ""):
            continue
        path = field_path(kind, container.name)
        if reason == "CrashLoopBackOff":
            whose = f"{container.name} in pod {meta.name}_{meta.namespace}({meta.uid})"
            yield StatusEvent(True, "BackOff", f"Back-off restarting failed container {whose}", path)
        elif reason == "ImagePullBackOff":
            # The image of the spec: the status names the image that ran last.
            yield StatusEvent(False, "BackOff", f'Back-off pulling image "{container.image}"', path)
            yield StatusEvent(True, "Failed", "Error: ImagePullBackOff", path)


def _waiting(status: ContainerStatus) -> str:
    return status.state.waiting.reason if status.state.waiting else ""


def resize_events(pod: Pod, old: PodStatus, new: PodStatus) -> Iterator[StatusEvent]:
    """The events of a resize, from its conditions."""
    before, after = _found(old, RESIZE_PENDING), _found(new, RESIZE_PENDING)
    if after and (before is None or (before.reason, before.message) != (after.reason, after.message)):
        text = _text(f"Pod resize {after.reason}", pod, after.observed_generation, after.message)
        yield StatusEvent(True, f"Resize{after.reason}", text)
    before, after = _found(old, RESIZE_IN_PROGRESS), _found(new, RESIZE_IN_PROGRESS)
    if after is None:
        if before is not None:
            text = _text("Pod resize completed", pod, before.observed_generation)
            yield StatusEvent(False, "ResizeCompleted", text)
        return
    generation = after.observed_generation
    if before is None or before.observed_generation != generation:
        yield StatusEvent(False, "ResizeStarted", _text("Pod resize started", pod, generation))
    if after.reason == "Error" and (before is None or before.message != after.message):
        text = _text("Pod resize error", pod, generation, after.message)
        yield StatusEvent(True, "ResizeError", text)


def _found(status: PodStatus, kind: str) -> PodCondition | None:
    return next((condition for condition in status.conditions if condition.type == kind), None)


class _Share(Part):
    name: str = ""
    resources: ResourceRequirements | None = None


class _Summary(Part):
    init_containers: list[_Share] = []
    containers: list[_Share] = []
    generation: Int64 = 0
    error: str = ""


def _text(what: str, pod: Pod, generation: int, error: str = "") -> str:
    """With the resources the pod was given, as JSON."""
    summary = _Summary(
        init_containers=_shares(pod.spec.init_containers),
        containers=_shares(pod.spec.containers),
        generation=generation,
        error=error,
    )
    return f"{what}: {encode(summary).decode()}"


def _shares(containers: list[Container]) -> list[_Share]:
    return [_Share(name=container.name, resources=container.resources) for container in containers]
