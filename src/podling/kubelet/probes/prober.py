"""One probe of one instance, for as long as the instance runs: when to ask, and telling what came of it.

wait until started ▸ wait out initialDelaySeconds ▸ ask every periodSeconds ──▶ verdict ──▶ tell
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from podling.kubelet.probes.outcome import Outcome, ProbeError
from podling.kubelet.probes.verdict import Health, ProbeKind, Verdict, judge
from podling.model.container import Probe
from podling.model.time import Clock

TRIES = 3
"""How often in a row a question is put that cannot be asked."""


class Ask(Protocol):
    async def __call__(self, probe: Probe) -> Outcome:
        """Raises ProbeError."""
        ...


Count = Callable[[bool], None]
"""Of an answer: whether it was a yes."""
Say = Callable[[str, str], None]
"""A warning event: reason and message."""


class Prober:
    """`run()` it; it returns when nothing more can come of it: a startup probe has passed, or a failure is
    final. `told` is called with every change of health."""

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
        """`started`: set once the startup probe has passed, and waited for by the others."""
        if self._kind is not ProbeKind.STARTUP:
            await started.wait()
        due = started_at + timedelta(seconds=self._probe.initial_delay_seconds)
        await asyncio.sleep(max((due - clock.now()).total_seconds(), 0))
        loop = asyncio.get_running_loop()
        while not self._over:
            began = loop.time()
            await self._once()
            spent = loop.time() - began
            if not self._over:
                await asyncio.sleep(max(self._probe.period_seconds - spent, 0))

    @property
    def _over(self) -> bool:
        health = self._verdict.health
        if self._kind is ProbeKind.STARTUP:
            return health is not Health.UNKNOWN
        return self._kind is ProbeKind.LIVENESS and health is Health.FAILED

    async def _once(self) -> None:
        outcome = await self._answer()
        if outcome is None:
            return
        self._count(outcome.success)
        if not outcome.success:
            self._say("Unhealthy", f"{self._kind.value} probe failed: {outcome.message}")
        elif outcome.message:
            self._say("ProbeWarning", f"{self._kind.value} probe warning: {outcome.message}")
        before, self._verdict = self._verdict, judge(self._verdict, outcome.success, self._probe)
        if self._verdict.health is not before.health:
            self._told(self._kind, self._verdict.health)

    async def _answer(self) -> Outcome | None:
        """None when the question cannot be asked: then nothing is known, and nothing changes."""
        why = ""
        for _ in range(TRIES):
            try:
                return await self._ask(self._probe)
            except ProbeError as error:
                why = str(error)
        self._say("Unhealthy", f"{self._kind.value} probe errored and resulted in unknown state: {why}")
        return None
