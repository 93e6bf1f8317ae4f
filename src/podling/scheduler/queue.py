"""The scheduling queue: pods that wait, and the changes in the cluster that may help them. Pure: the time is
an argument, in seconds of any monotonic clock.

    put ──▶ active ──pop──▶ (being scheduled) ──park──▶ parked ──wake──▶ backing off ──▶ active
                                     └───────fail──────────────────────────▲

Active pods are ordered by priority, then by waiting time. A pod woken before its backoff is over is tried
only while no pod is active, so that pods that fail again and again do not delay the others. A pod whose
attempt failed with an error waits its whole backoff.

A change (`NodeCame`, `PodLeft` …) wakes only the pods that it may help: with many pods waiting, trying all of
them at each change would take all of the scheduler's time.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Set
from typing import Protocol

import msgspec

from podling.model.rules.placement import collide
from podling.process.waits import Backoff
from podling.scheduler.filter import (
    NODE_PORTS,
    NODE_RESOURCES,
    POD_AFFINITY,
    TOPOLOGY_SPREAD,
    VOLUME_BINDING,
    VOLUME_LIMITS,
    VOLUME_RESTRICTIONS,
    VOLUME_ZONE,
    refuse,
)
from podling.scheduler.info import NamespaceLabels, NodeInfo, PodInfo
from podling.scheduler.volumes import claims_of

BACKOFF = Backoff(1.0, 10.0)
LONGEST_PARKING = 300.0
"""Seconds after which a parked pod is tried again even if nothing has happened."""

BY_LABELS = frozenset((TOPOLOGY_SPREAD, POD_AFFINITY, VOLUME_BINDING, VOLUME_ZONE))
"""The filters that look at labels of nodes, beside those of the node alone."""

ACTIVE, BACKING_OFF, PARKED, TAKEN = "active", "backing off", "parked", "taken"


class Change(Protocol):
    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        """Whether the pod may fit now; `refused_by` are the filters that refused it on some node."""
        ...


class NodeCame(msgspec.Struct, frozen=True):
    node: NodeInfo

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        return _hopeful(pod, self.node)


class NodeChanged(msgspec.Struct, frozen=True):
    before: NodeInfo
    after: NodeInfo

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        if refuse(pod, self.before) != refuse(pod, self.after):
            return _hopeful(pod, self.after)
        return bool(refused_by & BY_LABELS) and self.before.labels != self.after.labels


class NodeWent(msgspec.Struct, frozen=True):
    """A node was deleted; it may have been the emptiest topology domain."""

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        return TOPOLOGY_SPREAD in refused_by


class PodCame(msgspec.Struct, frozen=True):
    other: PodInfo
    namespaces: NamespaceLabels

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        if TOPOLOGY_SPREAD in refused_by and _is_spread_with(pod, self.other):
            return True
        near = pod.terms.near if POD_AFFINITY in refused_by else ()
        return any(term.means(self.other.pod, self.namespaces) for term in near)


class PodLeft(msgspec.Struct, frozen=True):
    other: PodInfo
    namespaces: NamespaceLabels

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        other = self.other
        if NODE_RESOURCES in refused_by:
            return True
        if NODE_PORTS in refused_by and collide(pod.ports, other.ports):
            return True
        if TOPOLOGY_SPREAD in refused_by and _is_spread_with(pod, other):
            return True
        if VOLUME_LIMITS in refused_by and any(claims_of(other.pod)):
            return True
        if VOLUME_RESTRICTIONS in refused_by and not set(claims_of(pod.pod)).isdisjoint(claims_of(other.pod)):
            return True
        return POD_AFFINITY in refused_by and (
            any(term.means(other.pod, self.namespaces) for term in pod.terms.apart)
            or any(term.means(pod.pod, self.namespaces) for term in other.terms.apart)
        )


class PodLeaving(msgspec.Struct, frozen=True):
    """A pod got a deletionTimestamp: it keeps its room, but topology spread does not count it any more."""

    other: PodInfo

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        return TOPOLOGY_SPREAD in refused_by and _is_spread_with(pod, self.other)


class NamespaceChanged(msgspec.Struct, frozen=True):
    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        return POD_AFFINITY in refused_by


class VolumesChanged(msgspec.Struct, frozen=True):
    """A claim, a volume, a class of storage, or what is known of CSI drivers came, changed or went."""

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        return bool(refused_by & {VOLUME_BINDING, VOLUME_ZONE, VOLUME_RESTRICTIONS, VOLUME_LIMITS})


def _hopeful(pod: PodInfo, node: NodeInfo) -> bool:
    refusal = refuse(pod, node)
    return refusal is None or not refusal.final


def _is_spread_with(pod: PodInfo, other: PodInfo) -> bool:
    return any(spread.pods.has(other.pod) for spread in pod.spreads)


class Waiting(msgspec.Struct, eq=False):
    """A pod in the queue. `attempts` counts failed ones."""

    pod: PodInfo
    place: str = ACTIVE
    attempts: int = 0
    refused_by: Set[str] = frozenset()
    since: float = 0.0
    """When it was parked."""
    ticket: int = 0
    """Its newest entry in a heap; older entries are void."""
    failed: bool = False

    def backoff_until(self) -> float:
        return self.since + BACKOFF.after(self.attempts)


class SchedulingQueue:
    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._parked: dict[str, Waiting] = {}
        self._active: list[tuple[int, int, Waiting]] = []
        self._backoffs: list[tuple[float, int, Waiting]] = []
        self._tickets = itertools.count(1)

    def __len__(self) -> int:
        """Pods in all places, including those being scheduled."""
        return len(self._waiting)

    def places(self) -> Counter[str]:
        """The number of pods in each place."""
        return Counter(waiting.place for waiting in self._waiting.values())

    def get(self, uid: str) -> Waiting | None:
        return self._waiting.get(uid)

    def put(self, pod: PodInfo, now: float) -> None:
        """Add a new pod, or one that was changed in a way that may help it."""
        known = self._waiting.get(pod.uid)
        if known is None:
            known = self._waiting[pod.uid] = Waiting(pod)
            self._activate(known)
        else:
            known.pod = pod
            self._wake(known, now)

    def pop(self, now: float) -> Waiting | None:
        """The next pod to try. It is in no place until `park`, `fail` or `drop`."""
        while self._backoffs and self._backoffs[0][0] <= now:
            entry = heapq.heappop(self._backoffs)
            if _is_valid(entry):
                self._activate(entry[2])
        stale = itertools.takewhile(lambda w: w.since + LONGEST_PARKING <= now, self._parked.values())
        for waiting in list(stale):
            self._wake(waiting, now)
        while self._active and not _is_valid(self._active[0]):
            heapq.heappop(self._active)
        taken = heapq.heappop(self._active)[2] if self._active else self._first_not_failed()
        if taken is not None:
            taken.place, taken.ticket = TAKEN, 0
        return taken

    def park(self, waiting: Waiting, refused_by: Set[str], now: float) -> None:
        """No node takes the pod: it waits for a change in the cluster."""
        waiting.attempts += 1
        waiting.refused_by, waiting.since, waiting.failed = refused_by, now, False
        waiting.place = PARKED
        self._parked[waiting.pod.uid] = waiting

    def fail(self, waiting: Waiting, now: float) -> None:
        """The attempt failed for a reason other than the pod's requirements; may be called after `park`."""
        if self._waiting.get(waiting.pod.uid) is not waiting:
            return
        if waiting.place == TAKEN:
            waiting.attempts += 1
        self._parked.pop(waiting.pod.uid, None)
        waiting.since, waiting.failed = now, True
        self._back_off(waiting)

    def drop(self, uid: str) -> None:
        waiting = self._waiting.pop(uid, None)
        if waiting is not None:
            waiting.ticket = 0
            self._parked.pop(uid, None)

    def wake(self, change: Change, now: float) -> None:
        for waiting in [w for w in self._parked.values() if change.may_help(w.pod, w.refused_by)]:
            self._wake(waiting, now)

    def has_parked(self) -> bool:
        return bool(self._parked)

    def due(self) -> float | None:
        """When `pop` may have a pod without a change in the cluster; None for never."""
        while self._backoffs and not _is_valid(self._backoffs[0]):
            heapq.heappop(self._backoffs)
        times = [self._backoffs[0][0]] if self._backoffs else []
        # Parked in the order of time: a dict keeps it.
        times += [w.since + LONGEST_PARKING for w in itertools.islice(self._parked.values(), 1)]
        return min(times, default=None)

    def _wake(self, waiting: Waiting, now: float) -> None:
        if waiting.place != PARKED:
            return
        del self._parked[waiting.pod.uid]
        if waiting.backoff_until() > now:
            self._back_off(waiting)
        else:
            self._activate(waiting)

    def _activate(self, waiting: Waiting) -> None:
        waiting.place, waiting.ticket = ACTIVE, next(self._tickets)
        heapq.heappush(self._active, (-waiting.pod.priority, waiting.ticket, waiting))

    def _back_off(self, waiting: Waiting) -> None:
        waiting.place, waiting.ticket = BACKING_OFF, next(self._tickets)
        heapq.heappush(self._backoffs, (waiting.backoff_until(), waiting.ticket, waiting))

    def _first_not_failed(self) -> Waiting | None:
        failed = []
        found = None
        while self._backoffs and found is None:
            entry = heapq.heappop(self._backoffs)
            if _is_valid(entry):
                if entry[2].failed:
                    failed.append(entry)
                else:
                    found = entry[2]
        for entry in failed:
            heapq.heappush(self._backoffs, entry)
        return found


def _is_valid(entry: tuple[float, int, Waiting]) -> bool:
    return entry[1] == entry[2].ticket
