"""What becomes of a container that has ended: whether and when it is started again. Pure.

The back-off is 10 s, doubled with each failure, at most 5 min (R-INIT-2). It is computed from what is
recorded and not kept in memory: each instance is annotated with the number of consecutive failures before it.
As in Kubernetes, the first failure causes no delay, and an instance that ran for more than ten minutes resets
the number.

RestartAllContainers: a container that exits as one of its rules says ends the restart generation ("round") of
its pod. The next round begins at the first init container, in the same sandbox. The id of a round is the id
of the container whose exit triggered it; the first round of a sandbox has the id "". Every instance is
annotated with the round it was made in, so the current round can be read from the runtime alone (R-INIT-11).
Ephemeral containers take no part.

The past: a container that ran according to the pod's status and that the runtime does not have any more
counts as ended. The runtime may have been emptied, or have lost its disk. A container that is not to be
restarted is then not started again, and an ephemeral container never is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zlib import crc32

from msgspec.structs import replace

from podling.kubelet.pod.containers import ALWAYS, NEVER, ContainerType, all_containers, all_statuses
from podling.kubelet.pod.observed import ContainerState, ObservedContainer, ObservedPod, StartFailure
from podling.model.codec.json import encode
from podling.model.rules.status import RESTART_ALL, rule_matches
from podling.model.time import parse_time
from podling.model.types.container import (
    Container,
    EphemeralContainer,
    EphemeralContainerCommon,
)
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStateTerminated
from podling.process.waits import Backoff

CRASH_LOOP = Backoff(10.0, 300.0)
FORGIVEN_AFTER = timedelta(minutes=10)
"""How long an instance has run that resets the number of failures: twice the longest delay."""

SOON = timedelta(seconds=1)
"""The least delay before what could not be started is tried again."""

SHOWN = timedelta(seconds=2)
"""How long an exit or a failed pull is itself the status before its back-off is (Error, then
CrashLoopBackOff)."""

LOST_EXIT_CODE = 137
STATUS_UNKNOWN = "ContainerStatusUnknown"
"""What an instance the runtime has lost is taken to have ended with."""

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""When an instance has started that has not, or of which it is not known."""


def restarts(
    pod: Pod, container: Container, kind: ContainerType, ended: ObservedContainer, observed: ObservedPod
) -> bool:
    """Whether a new instance follows this one, which has ended."""
    if ended.id in observed.restarting or observed.outdated(ended):
        return True
    return policy_restarts(pod, container, kind, LOST_EXIT_CODE if ended.lost else ended.exit_code)


def policy_restarts(pod: Pod, container: Container, kind: ContainerType, code: int) -> bool:
    """Whether the policies restart the container after an exit with `code`. restartPolicyRules come first,
    then the container's restartPolicy, then the pod's. An init container that succeeded is not restarted."""
    if kind is ContainerType.SIDECAR:
        return True
    if any(rule_matches(rule, code) for rule in container.restart_policy_rules):
        return True
    if kind is ContainerType.INIT and code == 0:
        return False
    policy = container.restart_policy or pod.spec.restart_policy or ALWAYS
    if policy == ALWAYS:
        return True
    return policy != NEVER and code != 0


def definition_hash(container: EphemeralContainerCommon) -> str:
    """A hash that changes when an instance must be replaced. Of a container only the image may be changed
    (R-INIT-5). An ephemeral container cannot be changed, so the hash of all its fields tells it from an
    earlier one of its name (R-EPH-11)."""
    if isinstance(container, EphemeralContainer):
        return f"{crc32(encode(container)):x}"
    return f"{crc32(f'{container.name}/{container.image}'.encode()):x}"


def changed(container: EphemeralContainerCommon, instance: ObservedContainer) -> bool:
    """Whether the instance was made from another definition. One without a hash was made by another kubelet,
    and counts as unchanged."""
    return instance.hash not in ("", definition_hash(container))


def from_before(ended: ObservedContainer, observed: ObservedPod) -> bool:
    """Whether it ended with the kubelet before this one, and so does not count as a failure of the container:
    its sandbox has gone since, for the node was stopped; or its start, which an earlier kubelet asked for,
    came to nothing. A runtime takes a start back whose caller dies."""
    began = observed.started_at
    if began is not None and ended.started_at <= _NEVER and ended.created_at < began:
        return True
    unseen = ended in observed.past or (began is not None and ended.finished_at < began)
    return unseen and not observed.in_sandbox(ended)


def delay(failures: int) -> timedelta:
    """The back-off after so many failures in a row."""
    return timedelta(seconds=CRASH_LOOP.after(failures))


def crashes_after(ended: ObservedContainer) -> int:
    """The failures in a row, this instance's included. One that never started has the epoch as its start."""
    started = max(ended.started_at, ended.created_at)
    return 1 if ended.finished_at - started > FORGIVEN_AFTER else ended.crashes + 1


def restart_delay(ended: ObservedContainer) -> timedelta:
    """The back-off between this end and the next start; the first failure causes none."""
    return delay(crashes_after(ended) - 1)


def restart_at(ended: ObservedContainer) -> datetime:
    return ended.finished_at + restart_delay(ended)


def retry_at(failure: StartFailure) -> datetime:
    """Failures that do not count do not lengthen the delay, which is at least SOON."""
    return failure.at + max(delay(failure.count), SOON)


def in_round(pod: Pod, observed: ObservedPod) -> ObservedPod:
    """`observed` with the id of the current round. Returns at once for a pod without such rules."""
    rules = {
        container.name: restart_all
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        if (restart_all := [rule for rule in container.restart_policy_rules if rule.action == RESTART_ALL])
    }
    made = list(of_sandbox(observed)) if rules else []
    if not made:
        return observed
    # An exit triggers one restart: exits of earlier rounds do not count.
    now = made[0].round
    ends = [
        c
        for c in made
        if c.round == now and c.exited and any(rule_matches(r, c.exit_code) for r in rules.get(c.name, ()))
    ]
    last = max(ends, key=lambda c: (c.finished_at, c.id), default=None)
    return replace(observed, round=last.id if last else now)


def ender(observed: ObservedPod) -> ObservedContainer | None:
    """The instance whose exit triggered this round, while containers of the earlier one still run."""
    if not any(c.alive and observed.outdated(c) for c in of_sandbox(observed)):
        return None
    return next((c for c in observed.containers if c.id == observed.round), None)


def of_sandbox(observed: ObservedPod) -> Iterator[ObservedContainer]:
    """The instances in the newest sandbox that take part in rounds, newest first."""
    for container in observed.containers:
        if container.type is not ContainerType.EPHEMERAL and observed.in_sandbox(container):
            yield container


def with_past(pod: Pod, observed: ObservedPod) -> ObservedPod:
    """`observed` with `past` filled from the pod's status: an instance for each container that has a status
    of one and that the runtime has no instance of."""
    there = {container.name for container in observed.containers}
    statuses = {status.name: status for status in all_statuses(pod.status) if status.name not in there}
    past = []
    for kind, container in all_containers(pod) if statuses else ():
        status = statuses.get(container.name)
        if status is None:
            continue
        ended = status.state.terminated
        if running := status.state.running:
            ended = ContainerStateTerminated(
                exit_code=LOST_EXIT_CODE,
                reason=STATUS_UNKNOWN,
                started_at=running.started_at,
                container_id=status.container_id,
            )
        elif kind is ContainerType.EPHEMERAL:
            # Any other that waits and has a last state has its next instance still to come.
            ended = ended or status.last_state.terminated
        if ended is None:
            continue
        started_at = parse_time(ended.started_at) if ended.started_at else _NEVER
        past.append(
            ObservedContainer(
                id=ended.container_id.rpartition("/")[2],
                name=status.name,
                type=kind,
                sandbox_id="",
                attempt=status.restart_count,
                state=ContainerState.EXITED,
                created_at=started_at,
                started_at=started_at,
                finished_at=parse_time(ended.finished_at) if ended.finished_at else _NEVER,
                exit_code=ended.exit_code,
                reason=ended.reason,
                message=ended.message,
                image=status.image,
                image_id=status.image_id,
            )
        )
    return replace(observed, past=tuple(past)) if past else observed
