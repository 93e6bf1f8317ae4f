"""What the outcomes of a probe add up to: thresholds as a state machine. Pure.

                    successThreshold successes in a row
    UNKNOWN, FAILED ──────────────────────────────────▶ PASSED
                    ◀──────────────────────────────────
                     failureThreshold failures in a row

A readiness probe counts as failed until it has passed, a liveness probe as passed until it has failed; of a
startup probe nothing is known before either.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from podling.kubelet.observed import ProbeResult
from podling.model.container import EphemeralContainerCommon, Probe


class ProbeKind(Enum):
    """The value is the word events begin with."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


class Health(Enum):
    UNKNOWN = "unknown"
    PASSED = "passed"
    FAILED = "failed"


FIRST = {
    ProbeKind.STARTUP: Health.UNKNOWN,
    ProbeKind.LIVENESS: Health.PASSED,
    ProbeKind.READINESS: Health.FAILED,
}


class Verdict(msgspec.Struct, frozen=True):
    """`last` is the newest outcome, `run` how many in a row were like it."""

    health: Health
    last: bool | None = None
    run: int = 0


def judge(before: Verdict, success: bool, probe: Probe) -> Verdict:
    run = before.run + 1 if success == before.last else 1
    needed = probe.success_threshold if success else probe.failure_threshold
    if run < needed:
        return Verdict(before.health, success, run)
    return Verdict(Health.PASSED if success else Health.FAILED, success, run)


def probes_of(container: EphemeralContainerCommon) -> dict[ProbeKind, Probe]:
    every = {
        ProbeKind.STARTUP: container.startup_probe,
        ProbeKind.LIVENESS: container.liveness_probe,
        ProbeKind.READINESS: container.readiness_probe,
    }
    return {kind: probe for kind, probe in every.items() if probe is not None}


def probe_result(container: EphemeralContainerCommon, healths: Mapping[ProbeKind, Health]) -> ProbeResult:
    """`healths` has an entry for each probe of the container."""
    started = healths.get(ProbeKind.STARTUP, Health.PASSED) is Health.PASSED
    ready = healths.get(ProbeKind.READINESS, Health.PASSED) is Health.PASSED
    given_up = [k for k in (ProbeKind.STARTUP, ProbeKind.LIVENESS) if healths.get(k) is Health.FAILED]
    if not given_up:
        return ProbeResult(started=started, ready=started and ready)
    kind = given_up[0]
    return ProbeResult(
        started=started,
        ready=started and ready,
        alive=False,
        message=f"Container {container.name} failed {kind.value.lower()} probe",
        grace_seconds=probes_of(container)[kind].termination_grace_period_seconds,
    )
