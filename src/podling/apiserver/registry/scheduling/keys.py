"""`matchLabelKeys` and `mismatchLabelKeys`: labels of the pod itself that a selector is completed with.

Completed once, when the pod is made (`complete_selectors`), so that who schedules it reads selectors only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podling.apiserver.registry import metadata
from podling.apiserver.registry.field import forbidden, invalid
from podling.model.errors import Cause
from podling.model.meta import LabelSelector, LabelSelectorRequirement
from podling.model.pod import PodSpec
from podling.model.scheduling import PodAffinityTerm


def complete_selectors(spec: PodSpec, labels: Mapping[str, str]) -> None:
    """Of a new pod. Changed in place."""
    if spec.affinity is not None:
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if affinity is not None:
                for weighted in affinity.preferred_during_scheduling_ignored_during_execution:
                    _complete_term(weighted.pod_affinity_term, labels)
                for term in affinity.required_during_scheduling_ignored_during_execution:
                    _complete_term(term, labels)
    for constraint in spec.topology_spread_constraints:
        _complete(constraint.label_selector, constraint.match_label_keys, "In", labels)


def _complete_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> None:
    _complete(term.label_selector, term.match_label_keys, "In", labels)
    _complete(term.label_selector, term.mismatch_label_keys, "NotIn", labels)


def _complete(
    selector: LabelSelector | None, keys: Sequence[str], operator: str, labels: Mapping[str, str]
) -> None:
    """A selector that is not there matches nothing, whatever it is completed with. Once is enough."""
    if selector is None or not keys:
        return
    wanted = [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for key in keys
        if key in labels
    ]
    known = {(one.key, one.operator, *one.values) for one in selector.match_expressions}
    missing = [one for one in wanted if (one.key, one.operator, *one.values) not in known]
    selector.match_expressions = selector.match_expressions + missing


def validate_merged_keys(
    match: Sequence[str],
    selector: LabelSelector | None,
    doubled_path: str,
    path: str,
    mismatch: Sequence[str] = (),
) -> Iterator[Cause]:
    """Of a completed selector: a key that stands in it twice was in it before. `doubled_path`: where that is
    said to be."""
    if not match and not mismatch:
        return
    mismatch_path = path.replace("matchLabelKeys", "mismatchLabelKeys")
    yield from _validate_keys(match, selector, path)
    yield from _validate_keys(mismatch, selector, mismatch_path)
    seen = set(selector.match_labels) if selector is not None else set()
    first = {key: len(match) - 1 - i for i, key in enumerate(reversed(match))}
    for expression in selector.match_expressions if selector is not None else ():
        if expression.key in first and expression.key in seen:
            where = f"{doubled_path}[{first[expression.key]}]"
            yield invalid(where, expression.key, "exists in both matchLabelKeys and labelSelector")
        seen.add(expression.key)
    other = frozenset(mismatch)
    for i, key in enumerate(match):
        if key in other:
            yield invalid(f"{path}[{i}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")


def _validate_keys(keys: Sequence[str], selector: LabelSelector | None, path: str) -> Iterator[Cause]:
    if keys and selector is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
        return
    for i, key in enumerate(keys):
        yield from metadata.validate_label_key(key, f"{path}[{i}]")
