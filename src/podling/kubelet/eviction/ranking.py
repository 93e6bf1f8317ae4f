"""Whom to evict first. Pure.

Whoever uses more than it asked for goes before whoever does not; then the lesser priority; then whoever is
furthest above what it asked for. Process ids are asked for by nobody: there only priority and number count.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podling.kubelet.eviction.thresholds import INODES, STORAGE
from podling.kubelet.planning.admission import is_critical
from podling.kubelet.stats.summary import PodStats
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.resources import pod_requests

_ZERO = Quantity("0")


class Candidate(msgspec.Struct, frozen=True):
    pod: Pod
    stats: PodStats


def ranked(resource: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """First to be evicted first; critical pods are not."""
    return sorted(
        (candidate for candidate in candidates if not is_critical(candidate.pod)),
        key=lambda candidate: _key(resource, candidate),
    )


def _key(resource: str, candidate: Candidate) -> tuple[bool, int, int]:
    used = usage(resource, candidate.stats)
    above = used - pod_requests(candidate.pod).get(resource, _ZERO).value()
    within = above <= 0 and resource != "pids"
    return within, candidate.pod.spec.priority or 0, -above


def usage(resource: str, stats: PodStats) -> int:
    """Bytes, inodes or processes; 0 when it is not known."""
    if resource == "memory":
        return (stats.memory.working_set_bytes or 0) if stats.memory else 0
    if resource == STORAGE:
        return (stats.ephemeral_storage.used_bytes or 0) if stats.ephemeral_storage else 0
    if resource == INODES:
        return (stats.ephemeral_storage.inodes_used or 0) if stats.ephemeral_storage else 0
    return (stats.process_stats.process_count or 0) if stats.process_stats else 0
