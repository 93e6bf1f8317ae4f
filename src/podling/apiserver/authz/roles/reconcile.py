"""What becomes of a default role or binding that is there already: nothing that it allows is taken away, and
what is missing is added, unless its annotation says that it is left alone. Pure."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from podling.apiserver.authz.cover import uncovered
from podling.model.types.rbac import AggregationRule, ClusterRole, ClusterRoleBinding, Role, RoleBinding

Default = Role | ClusterRole | RoleBinding | ClusterRoleBinding
R = TypeVar("R", bound=Role | ClusterRole)
B = TypeVar("B", bound=RoleBinding | ClusterRoleBinding)
T = TypeVar("T", bound=Default)

UPDATES = "rbac.authorization.kubernetes.io/autoupdate"


def is_left_alone(standing: Default) -> bool:
    return standing.metadata.annotations.get(UPDATES) == "false"


def reconciled_role(standing: R, wanted: R) -> R:
    """`standing` with what it lacks of `wanted`."""
    role = _labelled(standing, wanted)
    if isinstance(role, ClusterRole) and isinstance(wanted, ClusterRole) and wanted.aggregation_rule:
        selectors = role.aggregation_rule.cluster_role_selectors if role.aggregation_rule else []
        missing = [one for one in wanted.aggregation_rule.cluster_role_selectors if one not in selectors]
        return replace(role, aggregation_rule=AggregationRule(cluster_role_selectors=[*selectors, *missing]))
    other = [rule for rule in wanted.rules if rule not in role.rules]
    return replace(role, rules=[*role.rules, *uncovered(role.rules, other)])


def reconciled_binding(standing: B, wanted: B) -> B | None:
    """`standing` with the subjects it lacks; None if it is of another role, which cannot be changed: it is to
    be deleted and made again."""
    if standing.role_ref != wanted.role_ref:
        return None
    missing = [one for one in wanted.subjects if one not in standing.subjects]
    return replace(_labelled(standing, wanted), subjects=[*standing.subjects, *missing])


def _labelled(standing: T, wanted: T) -> T:
    """With the labels and annotations of `wanted` that it has no other value of."""
    meta = standing.metadata
    labels = {**wanted.metadata.labels, **meta.labels}
    annotations = {**wanted.metadata.annotations, **meta.annotations}
    return replace(standing, metadata=replace(meta, labels=labels, annotations=annotations))
