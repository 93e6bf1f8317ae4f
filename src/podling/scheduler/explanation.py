"""The messages of the FailedScheduling event and of the PodScheduled condition. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podling.scheduler.preemption import NOT_HELPFUL
from podling.scheduler.refusal import Refusal

NO_NODES = "no nodes available to schedule pods"


def explain(nodes: int, refusals: Iterable[Refusal], preemption: str = "") -> str:
    """`0/N nodes are available: …`: each reason with its number of nodes, in order of the text."""
    if not nodes:
        return NO_NODES
    told = _counted(nodes, Counter(reason for refusal in refusals for reason in refusal.reasons))
    return f"{told} preemption: {preemption}" if preemption else told


def explain_preemption(nodes: int, refusals: Iterable[Refusal]) -> str:
    """The part of the message about preemption. `refusals` are of the nodes that were tried; on all other
    nodes preemption cannot help."""
    looked_at = list(refusals)
    reasons = Counter(reason for refusal in looked_at for reason in refusal.reasons)
    if nodes > len(looked_at):
        reasons[NOT_HELPFUL] += nodes - len(looked_at)
    return _counted(nodes, reasons)


def _counted(nodes: int, reasons: Counter[str]) -> str:
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available: {listed}."
