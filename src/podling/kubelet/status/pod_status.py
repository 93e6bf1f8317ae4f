"""The PodStatus, with its phase, from what is observed. Pure.

`pod.status` is the newest known status. Times, restart counts, addresses and terminal phases are carried over
from it, so passing the result in again changes nothing. Ephemeral containers do not count for the phase
(R-EPH-3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from podling.kubelet.plan.ending import FAILED, SUCCEEDED, Ending, ending
from podling.kubelet.plan.past import with_past
from podling.kubelet.plan.resize import RESIZABLE, actuated_whole, whole
from podling.kubelet.plan.restart import policy_restarts
from podling.kubelet.plan.rounds import in_round
from podling.kubelet.pod.containers import ContainerType, all_containers, init_containers
from podling.kubelet.pod.observed import ObservedPod
from podling.kubelet.status.conditions import Facts, pod_conditions, resize_conditions, restart_all_condition
from podling.kubelet.status.container_status import StatusInputs, container_status, lose, never_begin
from podling.model.rules.resources import qos_class
from podling.model.rules.status import TERMINAL
from podling.model.time import rfc3339
from podling.model.types.container import Container, EphemeralContainer, ResourceList, ResourceRequirements
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStateTerminated, ContainerStatus, HostIP, PodIP, PodStatus

PENDING = "Pending"
RUNNING = "Running"


def pod_phase(pod: Pod, statuses: Mapping[str, ContainerStatus], *, over: bool, initialized: bool) -> str:
    """The phase. `statuses` by container name; `over`: no container is restarted; `initialized`: app
    containers have been created."""
    init = list(_init_states(pod, statuses))
    if "failed for good" in init:
        return FAILED
    sidecars = Counter(_sidecar_states(pod, statuses))
    apps = Counter(_app_state(pod, c, statuses[c.name], over) for c in pod.spec.containers)
    if "pending" in init or sidecars["waiting"] or apps["waiting"]:
        return PENDING
    if sidecars["starting"] and not initialized:
        return PENDING
    if apps["running"] or apps["restarting"] or sidecars["running"] or sidecars["starting"]:
        return RUNNING
    return FAILED if apps["failed"] else SUCCEEDED


def _init_states(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> Iterator[str]:
    for kind, container in init_containers(pod):
        if kind is ContainerType.SIDECAR:
            continue
        ended = _ended(statuses[container.name])
        if ended is None:
            yield "pending"
        elif ended.exit_code:
            again = policy_restarts(pod, container, kind, ended.exit_code)
            yield "failed" if again else "failed for good"


def _sidecar_states(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> Iterator[str]:
    for kind, container in init_containers(pod):
        if kind is not ContainerType.SIDECAR:
            continue
        status = statuses[container.name]
        if status.state.running:
            yield "running" if status.started else "starting"
        elif _ended(status) is None:
            yield "waiting"


def _app_state(pod: Pod, container: Container, status: ContainerStatus, over: bool) -> str:
    if status.state.running:
        return "running"
    ended = _ended(status)
    if ended is None:
        return "waiting"
    if not over and policy_restarts(pod, container, ContainerType.REGULAR, ended.exit_code):
        return "restarting"
    return "failed" if ended.exit_code else "succeeded"


def _ended(status: ContainerStatus) -> ContainerStateTerminated | None:
    """How it ended, now or before what it now waits for."""
    return status.state.terminated or (status.last_state.terminated if not status.state.running else None)


def pod_status(pod: Pod, observed: ObservedPod, now: datetime, host_ips: Sequence[str] = ()) -> PodStatus:
    observed = with_past(pod, in_round(pod, observed))
    end = ending(pod, observed, now)
    if end and end.phase and _never_begun(pod, observed):
        return _refusal(pod, observed, end, now)
    over = end is not None and not _may_run(observed)
    at = StatusInputs(pod, observed, now, ending=end is not None)
    init = [container_status(at, kind, c) for kind, c in init_containers(pod)]
    apps = [container_status(at, ContainerType.REGULAR, c) for c in pod.spec.containers]
    debug = [container_status(at, ContainerType.EPHEMERAL, c) for c in _ephemeral(pod, observed)]
    debugged = any(_has_run(s) for s in debug)
    if over:
        _lose_the_unaccounted(pod, init, apps)
        _begin_no_more(debug)
    statuses = {status.name: status for status in (*init, *apps)}
    begun = _begun_apps(pod, observed, apps, over=over)
    phase = _phase(pod, statuses, end, over=over, begun=begun)
    facts = Facts(phase, statuses, _sandbox_ready(observed), begun, debugged, _disruption(observed))
    pod_ips = _pod_ips(pod, observed, host_ips)
    reason, message = _why(pod.status, end, phase, over=over)
    asked = whole(pod)
    return msgspec.structs.replace(
        pod.status,
        observed_generation=pod.metadata.generation,
        phase=phase,
        reason=reason,
        message=message,
        conditions=[
            *pod_conditions(pod, facts, now),
            *restart_all_condition(pod, observed, now),
            *resize_conditions(pod, observed, now),
        ],
        host_ip=host_ips[0] if host_ips else pod.status.host_ip,
        host_ips=[HostIP(ip=ip) for ip in host_ips] or pod.status.host_ips,
        pod_ip=pod_ips[0] if pod_ips else "",
        pod_ips=[PodIP(ip=ip) for ip in pod_ips],
        start_time=pod.status.start_time or rfc3339(observed.started_at or now),
        init_container_statuses=init,
        container_statuses=sorted(apps, key=_name),
        ephemeral_container_statuses=sorted(debug, key=_name),
        qos_class=pod.status.qos_class or qos_class(pod),
        resources=_resources(pod, actuated_whole(asked, observed), phase),
        allocated_resources=asked.requests,
    )


def _resources(pod: Pod, has: ResourceRequirements, phase: str) -> ResourceRequirements:
    """Of a pod that runs only what can be resized, and what else it says itself."""
    if phase != RUNNING:
        return has
    said = pod.spec.resources or ResourceRequirements()
    return ResourceRequirements(
        requests=_picked(has.requests, said.requests),
        limits=_picked(has.limits, said.limits),
        claims=said.claims,
    )


def _picked(amounts: ResourceList, said: ResourceList) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if name in RESIZABLE or name in said}


def _disruption(observed: ObservedPod) -> str:
    told = observed.termination
    return told.message if told is not None and told.is_disruption else ""


def _ephemeral(pod: Pod, observed: ObservedPod) -> list[EphemeralContainer]:
    """Those of the spec, then those that were removed from it and of which something is still here: as long
    as they are shown their names cannot be used again (R-EPH-11).
    """
    known = {container.name for _, container in all_containers(pod)}
    left = {name: EphemeralContainer(name=name) for name in observed.starts - known}
    for instance in observed.containers:
        if instance.type is ContainerType.EPHEMERAL and instance.name not in known:
            left[instance.name] = EphemeralContainer(name=instance.name, image=instance.image)
    return [*pod.spec.ephemeral_containers, *left.values()]


def _never_begun(pod: Pod, observed: ObservedPod) -> bool:
    """Whether the node refused the pod: nothing was created, and no container has a status."""
    return observed.termination is not None and not observed.sandboxes and not pod.status.container_statuses


def _refusal(pod: Pod, observed: ObservedPod, end: Ending, now: datetime) -> PodStatus:
    at = StatusInputs(pod, observed, now, ending=True)
    debug = [container_status(at, ContainerType.EPHEMERAL, c) for c in pod.spec.ephemeral_containers]
    _begin_no_more(debug)
    return msgspec.structs.replace(
        pod.status,
        observed_generation=pod.metadata.generation,
        phase=end.phase,
        reason=end.reason,
        message=end.message,
        start_time=pod.status.start_time or rfc3339(observed.started_at or now),
        ephemeral_container_statuses=sorted(debug, key=_name),
        qos_class=pod.status.qos_class or qos_class(pod),
    )


def _name(status: ContainerStatus) -> str:
    return status.name


def _may_run(observed: ObservedPod) -> bool:
    return bool(observed.starts) or any(container.alive for container in observed.containers)


def _has_run(status: ContainerStatus) -> bool:
    """Of an ephemeral container; one that came too late has ended without an instance."""
    ended = status.state.terminated
    return bool(status.state.running or (ended and ended.container_id))


def _begin_no_more(debug: list[ContainerStatus]) -> None:
    for status in debug:
        if not (status.state.running or status.state.terminated):
            never_begin(status)


def _has_started(status: ContainerStatus) -> bool:
    return bool(status.state.running or status.state.terminated or status.last_state.terminated)


def _begun_apps(pod: Pod, observed: ObservedPod, apps: list[ContainerStatus], *, over: bool) -> bool:
    """Whether app containers were made in this sandbox or, of a pod that is over, ever."""
    if over:
        return any(_has_started(status) for status in apps)
    return any(observed.current(container.name) for container in pod.spec.containers)


def _sandbox_ready(observed: ObservedPod) -> bool:
    return observed.sandbox is not None and observed.sandbox.usable


def _phase(
    pod: Pod, statuses: dict[str, ContainerStatus], end: Ending | None, *, over: bool, begun: bool
) -> str:
    """A terminal phase never changes, and comes only after the last container of any type has stopped."""
    if pod.status.phase in TERMINAL:
        return pod.status.phase
    phase = pod_phase(pod, statuses, over=over, initialized=begun)
    if not over:
        return phase if phase not in TERMINAL else pod.status.phase or (RUNNING if begun else PENDING)
    if end and end.phase:
        return end.phase
    return phase if phase in TERMINAL else FAILED


def _why(old: PodStatus, end: Ending | None, phase: str, *, over: bool) -> tuple[str, str]:
    """Reason and message go with the phase: a new one has its own, an old one keeps them."""
    if phase == old.phase:
        return old.reason, old.message
    return (end.reason, end.message) if end and over else ("", "")


def _lose_the_unaccounted(pod: Pod, init: list[ContainerStatus], apps: list[ContainerStatus]) -> None:
    """When the pod is over, a container that was started and has no known exit counts as failed."""
    if _was_initialized(pod, init, apps):
        lost = [status for status in apps if not status.state.terminated]
    else:
        lost = []
    for status in (*_begun(init), *lost):
        if not status.state.terminated:
            lose(status)


def _was_initialized(pod: Pod, init: list[ContainerStatus], apps: list[ContainerStatus]) -> bool:
    if not init:
        return True
    if any(status.last_state.terminated or not status.state.waiting for status in apps):
        return True
    ended = init[-1].state.terminated or init[-1].last_state.terminated
    return bool(init[-1].started) or (ended is not None and ended.exit_code == 0)


def _begun(init: list[ContainerStatus]) -> list[ContainerStatus]:
    """All but the last ones that never ran; at least the first."""
    ran = [index for index, s in enumerate(init) if not s.state.waiting or s.last_state.terminated]
    return init[: max(ran, default=0) + 1]


def _pod_ips(pod: Pod, observed: ObservedPod, host_ips: Sequence[str]) -> list[str]:
    """Addresses stay in the status after the sandbox is gone: clients ask for those of completed pods."""
    if pod.spec.host_network:
        return list(host_ips) if observed.sandbox else []
    current = observed.sandbox.ips if observed.sandbox and observed.sandbox.usable else ()
    return list(current) or [ip.ip for ip in pod.status.pod_ips]
