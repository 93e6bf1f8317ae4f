"""How the choice of nodes may change while scheduling gates hold a pod: it is narrowed, never moved."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.apiserver.registry.field import invalid
from podling.apiserver.registry.scheduling.affinity import REQUIRED
from podling.model.errors import Cause
from podling.model.pod import PodSpec
from podling.model.scheduling import Affinity, NodeSelectorTerm


def validate_narrowing(new: PodSpec, old: PodSpec) -> Iterator[Cause]:
    if not old.node_selector.items() <= new.node_selector.items():
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", new.node_selector, why)
    before, after = _needed(old.affinity), _needed(new.affinity)
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if before and len(before) != len(after):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(path, after, why)
        return
    for i, (term, earlier) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(term, earlier):
            yield invalid(f"{path}[{i}]", term, "only additions are allowed (no mutations or deletions)")


def _needed(affinity: Affinity | None) -> list[NodeSelectorTerm]:
    """Any of which suffices: a further one would let the pod go to further nodes."""
    node = affinity.node_affinity if affinity is not None else None
    needed = node.required_during_scheduling_ignored_during_execution if node is not None else None
    return needed.node_selector_terms if needed is not None else []


def _only_adds(new: NodeSelectorTerm, old: NodeSelectorTerm) -> bool:
    """A term without requirements selects nothing; with one it would select something."""
    if not old.match_expressions and not old.match_fields:
        return not new.match_expressions and not new.match_fields
    return (
        new.match_expressions[: len(old.match_expressions)] == old.match_expressions
        and new.match_fields[: len(old.match_fields)] == old.match_fields
    )


def with_node_affinity(new: Affinity | None, old: Affinity | None) -> Affinity | None:
    """The old affinity with the new choice of nodes; None where that says nothing and neither does `new`."""
    node = new.node_affinity if new is not None else None
    changed = msgspec.structs.replace(old or Affinity(), node_affinity=node)
    return None if new is None and changed == Affinity() else changed
