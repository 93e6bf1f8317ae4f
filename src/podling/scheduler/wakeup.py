"""Which change in the cluster may make room for a pod that had none. Pure.

A change that cannot help wakes nobody: with many pods waiting, to try them all at each change would be all
the scheduler does.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol

import msgspec

from podling.model.host_ports import collide
from podling.scheduler.filter import refuse
from podling.scheduler.node_info import NodeInfo
from podling.scheduler.pod_info import PodInfo
from podling.scheduler.pod_terms import NamespaceLabels
from podling.scheduler.refusal import NODE_PORTS, NODE_RESOURCES, POD_AFFINITY, TOPOLOGY_SPREAD


class Change(Protocol):
    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        """`refused_by` are the filters that refused the pod on some node."""
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
        return bool(refused_by & {TOPOLOGY_SPREAD, POD_AFFINITY}) and self.before.labels != self.after.labels


class NodeWent(msgspec.Struct, frozen=True):
    """The emptiest domain may have gone with it."""

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
        return (
            NODE_RESOURCES in refused_by
            or (NODE_PORTS in refused_by and collide(pod.ports, self.other.ports))
            or (TOPOLOGY_SPREAD in refused_by and _is_spread_with(pod, self.other))
            or (POD_AFFINITY in refused_by and self._was_apart(pod))
        )

    def _was_apart(self, pod: PodInfo) -> bool:
        return any(term.means(self.other.pod, self.namespaces) for term in pod.terms.apart) or any(
            term.means(pod.pod, self.namespaces) for term in self.other.terms.apart
        )


class PodLeaving(msgspec.Struct, frozen=True):
    """It is being deleted: it keeps its room, but is not counted for spreading any more."""

    other: PodInfo

    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        return TOPOLOGY_SPREAD in refused_by and _is_spread_with(pod, self.other)


class NamespaceChanged(msgspec.Struct, frozen=True):
    def may_help(self, pod: PodInfo, refused_by: Set[str]) -> bool:
        return POD_AFFINITY in refused_by


def _hopeful(pod: PodInfo, node: NodeInfo) -> bool:
    refusal = refuse(pod, node)
    return refusal is None or not refusal.final


def _is_spread_with(pod: PodInfo, other: PodInfo) -> bool:
    return any(spread.pods.has(other.pod) for spread in pod.spreads)
