"""ClusterRoles: what may be done everywhere. Kept; not yet asked by an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.columns import CREATED_AT, NAME
from podling.apiserver.registry.field import invalid, required
from podling.apiserver.registry.kind import Kind
from podling.apiserver.registry.label_selectors import validate_label_selector
from podling.apiserver.registry.rbac_validation import validate_rules
from podling.model import names
from podling.model.errors import Cause
from podling.model.rbac import AggregationRule, ClusterRole
from podling.model.scheme import resource_of


class ClusterRoles(Kind[ClusterRole]):
    resource = resource_of(ClusterRole)
    creates_on_update = True
    columns = (NAME, CREATED_AT)

    def validate(self, obj: ClusterRole) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False, name_rule=names.path_segment),
            *validate_rules(obj.rules, namespaced=False),
            *_validate_aggregation(obj.aggregation_rule),
        ]

    def validate_update(self, new: ClusterRole, old: ClusterRole) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: ClusterRole, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.metadata.creation_timestamp]


def _validate_aggregation(rule: AggregationRule | None) -> Iterator[Cause]:
    if rule is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    if not rule.cluster_role_selectors:
        yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for i, selector in enumerate(rule.cluster_role_selectors):
        if faults := list(validate_label_selector(selector, f"{path}[{i}]")):
            yield from faults
            yield invalid(f"{path}[{i}]", None, "invalid label selector.")
