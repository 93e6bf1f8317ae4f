"""The states of a pod on its node, as Kubernetes' pod workers have them.

    syncing ──▶ terminating ──▶ terminated ──▶ finished
       │                            ▲
       └───── (nothing runs) ───────┘

syncing: the pod should run. terminating: it must end, and containers may still run. terminated: nothing runs,
logs and status remain. finished: nothing is left on the node. A pod never goes back to an earlier state.
"""

from __future__ import annotations

from enum import Enum


class PodState(Enum):
    SYNCING = "syncing"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FINISHED = "finished"


MOVES: dict[PodState, frozenset[PodState]] = {
    PodState.SYNCING: frozenset({PodState.TERMINATING, PodState.TERMINATED}),
    PodState.TERMINATING: frozenset({PodState.TERMINATED}),
    PodState.TERMINATED: frozenset({PodState.FINISHED}),
    PodState.FINISHED: frozenset(),
}


def furthest(one: PodState, other: PodState) -> PodState:
    order = list(PodState)
    return max(one, other, key=order.index)


class IllegalMove(Exception):
    """A pod cannot go back to an earlier state."""


class PodLife:
    """The state of one pod. `move` raises IllegalMove, and changes nothing, for a move the table does not
    have."""

    def __init__(self, state: PodState = PodState.SYNCING) -> None:
        self.state = state

    def move(self, to: PodState) -> bool:
        """False if the pod is in this state already, which is always allowed."""
        if to is self.state:
            return False
        if to not in MOVES[self.state]:
            raise IllegalMove(f"a {self.state.value} pod cannot become {to.value}")
        self.state = to
        return True
