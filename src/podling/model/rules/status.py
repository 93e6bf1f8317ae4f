"""What the phase, conditions and annotations of an object say, for all parts that ask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from podling.model.types.pod import Pod

TERMINAL = frozenset(("Succeeded", "Failed"))
"""Phases in which no container of the pod runs or will run again."""
MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a mirror pod: the API object that a kubelet creates for a static pod."""


class Condition(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...


def is_terminal(pod: Pod) -> bool:
    return pod.status.phase in TERMINAL


def is_condition_true(conditions: Iterable[Condition], type: str) -> bool:
    """False, too, when there is no condition of this type."""
    return any(c.type == type and c.status == "True" for c in conditions)
