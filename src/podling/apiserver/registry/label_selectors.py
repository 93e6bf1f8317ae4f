"""Faults of label selectors: what they ask of a label, and how."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry import metadata
from podling.apiserver.registry.field import all_invalid, forbidden, invalid, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.meta import LabelSelector


def validate_label_selector(selector: LabelSelector | None, path: str) -> Iterator[Cause]:
    if selector is None:
        return
    yield from metadata.validate_labels(selector.match_labels, f"{path}.matchLabels")
    for i, expression in enumerate(selector.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        yield from validate_values(expression.operator, expression.values, where)
        yield from metadata.validate_label_key(expression.key, f"{where}.key")
        for j, value in enumerate(expression.values):
            yield from all_invalid(f"{where}.values[{j}]", value, names.label_value(value))


def validate_values(operator: str, values: list[str], path: str) -> Iterator[Cause]:
    """Of a requirement: how many values its operator takes."""
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", why)
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
