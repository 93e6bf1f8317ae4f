"""One probe of one container instance: when it is run, and what its outcomes add up to.

wait until started ▸ wait initialDelaySeconds ▸ run it every periodSeconds ──▶ verdict ──▶ report a change

                    successThreshold successes in a row
    UNKNOWN, FAILED ──────────────────────────────────▶ PASSED
                    ◀──────────────────────────────────
                     failureThreshold failures in a row

Until the first threshold is reached a readiness probe counts as failed, a liveness probe as passed, and a
startup probe as unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

import msgspec

from podling.kubelet.pod.observed import ProbeResult
from podling.kubelet.probes.check import Outcome, ProbeError
from podling.model.time import Clock
from podling.model.types.container import EphemeralContainerCommon, Probe

TRIES = 3
"""How often a probe is tried that cannot be run (ProbeError), as in Kubernetes."""

Count = Callable[[bool], None]
"""Called with the success of each outcome."""
Say = Callable[[str, str], None]
"""Records a warning event: reason and message."""


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
    """What the outcomes so far add up to."""

    health: Health
    last: bool | None = None
    """The newest outcome; None before the first one."""
    run: int = 0
    """How many consecutive outcomes were like `last`."""


def judge(before: Verdict, success: bool, probe: Probe) -> Verdict:
    """The verdict after one more outcome."""
    run = before.run + 1 if success == before.last else 1
    needed = probe.success_threshold if success else probe.failure_threshold
    if run < needed:
        return Verdict(before.health, success, run)
    return Verdict(Health.PASSED if success else Health.FAILED, success, run)


def probes_of(container: EphemeralContainerCommon) -> dict[ProbeKind, Probe]:
    """The probes that the container has."""
    every = {
        ProbeKind.STARTUP: container.startup_probe,
        ProbeKind.LIVENESS: container.liveness_probe,
        ProbeKind.READINESS: container.readiness_probe,
    }
    return {kind: probe for kind, probe in every.items() if probe is not None}


def probe_result(container: EphemeralContainerCommon, healths: Mapping[ProbeKind, Health]) -> ProbeResult:
    """What the probes of one instance say together. `healths` has an entry for each of its probes."""
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
        message=f"failed {kind.value.lower()} probe",
        grace_seconds=probes_of(container)[kind].termination_grace_period_seconds,
    )


class Ask(Protocol):
    async def __call__(self, probe: Probe) -> Outcome:
        """Raises ProbeError."""
        ...


class Prober:
    """Runs one probe periodically. `run()` returns when the result is final: a startup probe has passed or
    failed, a liveness probe has failed. `told` is called at each change of health."""

    def __init__(
        self,
        kind: ProbeKind,
        probe: Probe,
        ask: Ask,
        say: Say,
        count: Count,
        told: Callable[[ProbeKind, Health], None],
        first: Health,
    ) -> None:
        self._kind = kind
        self._probe = probe
        self._ask = ask
        self._say = say
        self._count = count
        self._told = told
        self._verdict = Verdict(first)

    async def run(self, clock: Clock, started: asyncio.Event, started_at: datetime) -> None:
        """`started` is set when the startup probe has passed; other probes wait for it."""
        if self._kind is not ProbeKind.STARTUP:
            await started.wait()
        due = started_at + timedelta(seconds=self._probe.initial_delay_seconds)
        await asyncio.sleep(max((due - clock.now()).total_seconds(), 0))
        loop = asyncio.get_running_loop()
        while not self._over:
            began = loop.time()
            if outcome := await self._answer():
                self._count(outcome.success)
                if not outcome.success:
                    self._say("Unhealthy", f"{self._kind.value} probe failed: {outcome.message}")
                elif outcome.message:
                    self._say("ProbeWarning", f"{self._kind.value} probe warning: {outcome.message}")
                before, self._verdict = self._verdict, judge(self._verdict, outcome.success, self._probe)
                if self._verdict.health is not before.health:
                    self._told(self._kind, self._verdict.health)
            spent = loop.time() - began
            if not self._over:
                await asyncio.sleep(max(self._probe.period_seconds - spent, 0))

    @property
    def _over(self) -> bool:
        health = self._verdict.health
        if self._kind is ProbeKind.STARTUP:
            return health is not Health.UNKNOWN
        return self._kind is ProbeKind.LIVENESS and health is Health.FAILED

    async def _answer(self) -> Outcome | None:
        """None if the probe could not be run: then the verdict stays."""
        why = ""
        for _ in range(TRIES):
            try:
                return await self._ask(self._probe)
            except ProbeError as error:
                why = str(error)
        self._say("Unhealthy", f"{self._kind.value} probe errored and resulted in unknown state: {why}")
        return None
