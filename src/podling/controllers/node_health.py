"""What is said of a node whose kubelet is silent, and the taints that follow from its conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podling.model.node import Node, NodeCondition, Taint
from podling.model.taints import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, UNSCHEDULABLE

CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
OF_CONDITION = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
MANAGED = frozenset((NOT_READY, UNREACHABLE, UNSCHEDULABLE, *OF_CONDITION.values()))


def unknown(node: Node, now: str) -> list[NodeCondition]:
    """The node's conditions once nothing has been heard of it for too long."""
    standing = {condition.type: condition for condition in node.status.conditions}
    for type in CONDITIONS:
        before = standing.get(type)
        if before is None:
            reason, message = NEVER
            standing[type] = NodeCondition(
                type=type,
                status="Unknown",
                last_heartbeat_time=node.metadata.creation_timestamp,
                last_transition_time=now,
                reason=reason,
                message=message,
            )
        elif before.status != "Unknown":
            reason, message = STOPPED
            standing[type] = replace(
                before, status="Unknown", reason=reason, message=message, last_transition_time=now
            )
    return list(standing.values())


def readiness(node: Node) -> str:
    """`True`, `False` or `Unknown`; of a node that has said nothing yet, the empty string."""
    return next((c.status for c in node.status.conditions if c.type == "Ready"), "")


def taints(node: Node, now: str) -> list[Taint]:
    """The taints the node should have: those that follow from its state, and all of other sorts."""
    wanted = {(taint.key, taint.effect): taint for taint in _due(node, now)}
    kept = []
    for taint in node.spec.taints:
        place = (taint.key, taint.effect)
        if taint.key not in MANAGED:
            kept.append(taint)
        elif place in wanted:
            # One that is there keeps its time: evictions count from it.
            kept.append(taint)
            del wanted[place]
    return [*kept, *wanted.values()]


def _due(node: Node, now: str) -> Iterator[Taint]:
    key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(readiness(node))
    if key is not None:
        yield Taint(key=key, effect=NO_SCHEDULE, time_added=now)
        yield Taint(key=key, effect=NO_EXECUTE, time_added=now)
    for condition in node.status.conditions:
        if condition.type in OF_CONDITION and condition.status == "True":
            yield Taint(key=OF_CONDITION[condition.type], effect=NO_SCHEDULE, time_added=now)
    if node.spec.unschedulable:
        yield Taint(key=UNSCHEDULABLE, effect=NO_SCHEDULE, time_added=now)
