"""How fast nodes that are not ready are given up, which is to say tainted so that their pods are evicted.

The more of a zone seems lost, the likelier it is that something between is lost, and its nodes and pods are
well. These are the modes of disruption of Kubernetes' node lifecycle controller:

    the zone's nodes that are not ready        mode       nodes given up a second
    fewer than `unhealthy`, or only two        normal     `usual`
    `unhealthy` or more                        partial    `reduced` if there are more than `large`, else none
    all                                        full       `usual`
    all, and so it is in all zones             full       none, and none stays given up

Pure: the time is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from podling.model.rules.status import is_condition_true
from podling.model.types.node import Node

REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
"""Labels, the first that is there counts."""
EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label of nodes that are not counted."""
FEW = 2
"""So many that are not ready leave each zone normal that has one that is."""

Zone = tuple[str, str]
"""Region and zone; empty strings for nodes without the labels."""


class Limits(Struct, frozen=True):
    usual: float = 0.1
    """Nodes a second, as `reduced`."""
    reduced: float = 0.01
    unhealthy: float = 0.55
    """The part of a zone's nodes."""
    large: int = 50
    """Nodes of a zone."""


class Counted(NamedTuple):
    """Nodes of a zone."""

    ready: int
    lost: int


def zone_of(node: Node) -> Zone:
    labels = node.metadata.labels
    region, zone = (next((labels[key] for key in keys if key in labels), "") for keys in (REGION, ZONE))
    return region, zone


def are_all_lost(zones: Mapping[Zone, Counted]) -> bool:
    return bool(zones) and not any(zone.ready for zone in zones.values())


def rates(zones: Mapping[Zone, Counted], limits: Limits) -> dict[Zone, float]:
    """How many nodes of each zone are given up a second."""
    if are_all_lost(zones):
        return dict.fromkeys(zones, 0.0)
    return {name: rate(zone, limits) for name, zone in zones.items()}


def rate(zone: Counted, limits: Limits) -> float:
    size = zone.ready + zone.lost
    if not zone.ready or zone.lost <= FEW or zone.lost / size < limits.unhealthy:
        return limits.usual
    return limits.reduced if size > limits.large else 0.0


class Gate:
    """Lets the nodes of a zone through, one after the other. Only the first of those that wait need ask when:
    were all to ask again each time, many lost nodes would cost the square of their number."""

    def __init__(self, rate: float) -> None:
        self._line: dict[str, None] = {}
        """Names of nodes that wait, in the order in which they came."""
        self._rate = rate
        self._next: datetime | None = None
        """When it opens again, if it was not open at once."""

    def is_first(self, name: str) -> bool:
        """Whether no other waits before this node, which waits from now on."""
        self._line.setdefault(name)
        return next(iter(self._line)) == name

    def leave(self, name: str) -> str | None:
        """The node waits no more. Returns who is the first now and was not."""
        was_first = next(iter(self._line), None) == name
        self._line.pop(name, None)
        return next(iter(self._line), None) if was_first else None

    def wait(self, now: datetime) -> timedelta | None:
        """How long until it is open, not above zero if it is; None for as long as the rate is zero."""
        if not self._rate:
            return None
        return self._next - now if self._next is not None else timedelta()

    def through(self, now: datetime) -> None:
        """A node went through."""
        self._next = now + timedelta(seconds=1 / self._rate)

    def set(self, rate: float, now: datetime) -> bool:
        """Whether the rate was another. Who waits then waits anew."""
        if rate == self._rate:
            return False
        wait = self.wait(now)
        self._rate = rate
        if rate and (wait is None or wait > timedelta()):
            self.through(now)
        return True


class Judged(NamedTuple):
    changed: bool
    """Nodes of some zone are given up faster or slower than before."""
    some_again: bool
    """All nodes were lost, and are no more."""


class Zones:
    """All zones, as the last judgement has left them. Nodes are counted as they change: were all of them
    counted at each change, many that are lost at once would cost the square of their number."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._nodes: Counter[Zone] = Counter()
        self.counted: dict[Zone, Counted] = {}
        self._gates: dict[Zone, Gate] = {}
        self.all_lost = False

    def change(self, old: Node | None, new: Node | None) -> None:
        # In this order: a zone is not forgotten whose only node changes.
        for node, number in ((new, 1), (old, -1)):
            if node is None:
                continue
            zone = zone_of(node)
            self._nodes[zone] += number
            if EXCLUDED not in node.metadata.labels:
                ready, lost = self.counted.pop(zone, (0, 0))
                is_ready = is_condition_true(node.status.conditions, "Ready")
                counted = Counted(ready + number * is_ready, lost + number * (not is_ready))
                if any(counted):
                    self.counted[zone] = counted
            if not self._nodes[zone]:
                del self._nodes[zone]
                self._gates.pop(zone, None)

    def judge(self, now: datetime) -> Judged:
        were_all_lost, self.all_lost = self.all_lost, are_all_lost(self.counted)
        changed = [
            self._gate(zone).set(rate, now) for zone, rate in rates(self.counted, self._limits).items()
        ]
        return Judged(any(changed), were_all_lost and not self.all_lost)

    def gate(self, node: Node) -> Gate:
        return self._gate(zone_of(node))

    def _gate(self, zone: Zone) -> Gate:
        return self._gates.setdefault(zone, Gate(self._limits.usual))
