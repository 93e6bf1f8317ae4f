"""Whether and when a container that has ended is started again: restart policies and back-off. Pure.

The back-off is 10 s, doubled with each failure, at most 5 min (R-INIT-2). It is computed from what is
recorded and not kept in memory: each instance is annotated with the number of consecutive failures before it.
As in Kubernetes, the first failure causes no delay, and an instance that ran for more than ten minutes resets
the number.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zlib import crc32

from podling.kubelet.pod.containers import ALWAYS, NEVER, ContainerType
from podling.kubelet.pod.observed import ObservedContainer, ObservedPod, StartFailure
from podling.model.codec.json import encode
from podling.model.types.container import (
    Container,
    ContainerRestartRule,
    EphemeralContainer,
    EphemeralContainerCommon,
)
from podling.model.types.pod import Pod
from podling.process.backoff import Backoff

CRASH_LOOP = Backoff(10.0, 300.0)
FORGIVEN_AFTER = timedelta(minutes=10)

SOON = timedelta(seconds=1)

SHOWN = timedelta(seconds=2)
"""How long an exit or a failed pull is itself the status before its back-off is (Error, then
CrashLoopBackOff)."""


def delay(failures: int) -> timedelta:
    return timedelta(seconds=CRASH_LOOP.after(failures))


def crashes_after(ended: ObservedContainer) -> int:
    """The failures in a row, this instance's included. One that never started has the epoch as its start."""
    started = max(ended.started_at, ended.created_at)
    return 1 if ended.finished_at - started > FORGIVEN_AFTER else ended.crashes + 1


def restart_delay(ended: ObservedContainer) -> timedelta:
    return delay(crashes_after(ended) - 1)


def restart_at(ended: ObservedContainer) -> datetime:
    return ended.finished_at + restart_delay(ended)


def retry_at(failure: StartFailure) -> datetime:
    """Failures that do not count do not lengthen the delay, which is at least SOON."""
    return failure.at + max(delay(failure.count), SOON)


LOST_EXIT_CODE = 137
RESTART, RESTART_ALL = "Restart", "RestartAllContainers"
STATUS_UNKNOWN = "ContainerStatusUnknown"
"""What an instance the runtime has lost is taken to have ended with."""


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
    """Whether it ended with its sandbox before this kubelet started. The node was stopped, so the end does
    not count as a failure of the container."""
    began = observed.started_at
    unseen = ended in observed.past or (began is not None and ended.finished_at < began)
    return unseen and not observed.in_sandbox(ended)


def exit_code(ended: ObservedContainer) -> int:
    return LOST_EXIT_CODE if ended.lost else ended.exit_code


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


def rule_matches(rule: ContainerRestartRule, code: int) -> bool:
    if rule.exit_codes is None or rule.action not in (RESTART, RESTART_ALL):
        return False
    listed = code in rule.exit_codes.values
    return listed if rule.exit_codes.operator == "In" else not listed


def restarts(
    pod: Pod, container: Container, kind: ContainerType, ended: ObservedContainer, observed: ObservedPod
) -> bool:
    """Whether a new instance follows this one, which has ended."""
    if ended.id in observed.restarting or observed.outdated(ended):
        return True
    return policy_restarts(pod, container, kind, exit_code(ended))
