"""A plan being made: collects actions and wake-up times, and leaves out what is already in flight."""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.pod.actions import BRINGS_UP, Action, Plan, StopContainer, StopSandbox, covers
from podling.kubelet.pod.lifecycle import PodState
from podling.kubelet.pod.observed import ObservedPod

_HOLDING = (*BRINGS_UP, StopContainer, StopSandbox)
"""The kinds of action during which a pod cannot be said to have stopped."""


class Draft:
    def __init__(self, observed: ObservedPod, now: datetime) -> None:
        self.observed = observed
        self.now = now
        self._actions: list[Action] = []
        self._wakes: list[datetime] = []

    def add(self, action: Action) -> None:
        in_flight = self.observed.in_flight
        # The first question is the cheap one, and most often enough: many stops may be under way.
        if action not in in_flight and not any(covers(other, action) for other in in_flight):
            self._actions.append(action)

    def wake(self, at: datetime | None) -> None:
        if at and at > self.now:
            self._wakes.append(at)

    def starting(self, name: str) -> bool:
        return self.observed.starting(name)

    @property
    def quiet(self) -> bool:
        """Nothing is planned or under way that could still run or stop anything."""
        return not self._actions and not self.observed.applying(*_HOLDING)

    def plan(self, state: PodState) -> Plan:
        return Plan(state, tuple(self._actions), min(self._wakes, default=None))
