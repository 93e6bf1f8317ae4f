"""Which pods of an owner go first when it has too many. Pure.

Those that have come least far: not bound, pending, not ready; then those that cost least
(`controller.kubernetes.io/pod-deletion-cost`), that stand beside most others on their node, that are ready or
exist for the shortest time, and whose containers restarted most. Ages are alike when they are of one power of
two, so that not always the newest go, which may be all that a zone has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key, partial
from typing import NamedTuple

from podling.controllers.endpoints import is_ready
from podling.controllers.workloads.pods import is_active, ready_since
from podling.model.rules.resources import is_sidecar
from podling.model.time import parse_optional
from podling.model.types.pod import Pod

COST = "controller.kubernetes.io/pod-deletion-cost"
PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
INT32 = range(-(1 << 31), 1 << 31)


class Standing(NamedTuple):
    """What the order of two pods depends on, in this order; of each the lower one goes first."""

    progress: tuple[int, ...]
    ready_since: datetime | None
    restarts: tuple[int, int]
    created: datetime | None
    uid: str


def to_delete(pods: Sequence[Pod], related: Iterable[Pod], count: int, now: datetime) -> Sequence[Pod]:
    """`count` of `pods`; `related` are all pods of the owner's siblings, its own included."""
    if count >= len(pods):
        return pods
    beside = Counter(pod.spec.node_name for pod in related if is_active(pod))
    standings = [standing(pod, beside[pod.spec.node_name]) for pod in pods]
    compare = cmp_to_key(partial(order, now))
    ordered = sorted(zip(standings, pods, strict=True), key=lambda pair: compare(pair[0]))
    return [pod for _, pod in ordered[:count]]


def standing(pod: Pod, beside: int) -> Standing:
    """`beside`: the related pods on its node."""
    return Standing(
        (
            bool(pod.spec.node_name),
            PHASES.get(pod.status.phase, 0),
            is_ready(pod),
            cost(pod.metadata.annotations.get(COST, "")),
            -beside,
        ),
        ready_since(pod),
        restarts(pod),
        parse_optional(pod.metadata.creation_timestamp),
        pod.metadata.uid,
    )


def order(now: datetime, one: Standing, other: Standing) -> int:
    """Negative when `one` goes first, 0 when nothing decides."""
    if one.progress != other.progress:
        return -1 if one.progress < other.progress else 1
    if one.ready_since != other.ready_since:
        return _younger(now, one.ready_since, other.ready_since, one.uid, other.uid)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return _younger(now, one.created, other.created, one.uid, other.uid)
    return 0


def _younger(now: datetime, one: datetime | None, other: datetime | None, uid: str, other_uid: str) -> int:
    if one is None or other is None:
        return -1 if one is None else 1
    ages = _power(now - one) - _power(now - other)
    return ages or (-1 if uid < other_uid else 1)


def _power(age: timedelta) -> int:
    """Of two, of its nanoseconds."""
    return int(math.log2(age.total_seconds() * 1e9)) if age > timedelta() else -1


def cost(text: str) -> int:
    """0 for what is no number of 32 bits as Kubernetes writes it."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") and text != "-0"
    return int(text) if plain and len(digits) <= 10 and int(text) in INT32 else 0


def restarts(pod: Pod) -> tuple[int, int]:
    """The most of a container, and of a sidecar."""
    sidecars = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    status = pod.status
    of_sidecars = (one.restart_count for one in status.init_container_statuses if one.name in sidecars)
    return (
        max((one.restart_count for one in status.container_statuses), default=0),
        max(of_sidecars, default=0),
    )
