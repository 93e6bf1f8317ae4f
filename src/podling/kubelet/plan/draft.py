"""A plan being made: collects actions and wake-up times, and leaves out what is already in flight."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from podling.kubelet.pod.actions import Action, Plan, StopContainer
from podling.kubelet.pod.lifecycle import PodState
from podling.kubelet.pod.observed import ObservedPod

_HOLDING = ("create-sandbox", "start:", "stop:", "stop-sandbox:")
"""Keys of actions during which a pod cannot be said to have stopped."""


class Draft:
    def __init__(self, observed: ObservedPod, now: datetime) -> None:
        self.observed = observed
        self.now = now
        self._actions: list[Action] = []
        self._wakes: list[datetime] = []

    def add(self, action: Action) -> None:
        if action.key in self.observed.in_flight:
            return
        if isinstance(action, StopContainer) and self._stopping_already(action):
            return
        self._actions.append(action)

    def _stopping_already(self, action: StopContainer) -> bool:
        """A stop under way with no more grace than this one makes it needless."""
        prefix = f"stop:{action.id}:"
        stops = (key for key in self.observed.in_flight if key.startswith(prefix))
        return any(int(key.removeprefix(prefix)) <= action.pod_grace for key in stops)

    def wake(self, at: datetime | None) -> None:
        if at and at > self.now:
            self._wakes.append(at)

    def starting(self, name: str) -> bool:
        return self.observed.starting(name)

    def in_flight(self, prefixes: Iterable[str]) -> bool:
        return any(key.startswith(tuple(prefixes)) for key in self.observed.in_flight)

    @property
    def quiet(self) -> bool:
        """Nothing is planned or under way that could still run or stop anything."""
        return not self._actions and not self.in_flight(_HOLDING)

    def plan(self, state: PodState) -> Plan:
        return Plan(state, tuple(self._actions), min(self._wakes, default=None))
