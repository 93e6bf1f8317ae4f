"""R-SYS-4: roles that are made of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podling.controllers.roles import ClusterRoleAggregation, aggregated
from podling.model.types.meta import LabelSelector, ObjectMeta
from podling.model.types.rbac import AggregationRule, ClusterRole, PolicyRule

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

SEES, EDITS = PolicyRule(verbs=["get"]), PolicyRule(verbs=["update"])


def role(name: str, *rules: PolicyRule, part_of: str = "", made_of: str = "") -> ClusterRole:
    selector = LabelSelector(match_labels={"in": made_of})
    return ClusterRole(
        metadata=ObjectMeta(name=name, labels={"in": part_of} if part_of else {}),
        rules=list(rules),
        aggregation_rule=AggregationRule(cluster_role_selectors=[selector]) if made_of else None,
    )


def test_a_role_is_made_of_those_it_selects_each_rule_once() -> None:
    whole = role("whole", part_of="all", made_of="all")
    parts = [role("b", EDITS, SEES, part_of="all"), role("a", SEES, SEES, part_of="all"), role("c", EDITS)]
    assert aggregated(whole, [whole, *parts]) == [SEES, EDITS]
    assert aggregated(parts[0], parts) == [EDITS, SEES]


async def test_a_role_joins_by_its_label_and_leaves(cluster: Cluster) -> None:
    labels = {"example.com/aggregate-to-watcher": "true"}
    selectors = [{"matchLabels": labels}]
    await cluster.make(ClusterRole, "watcher", "", aggregationRule={"clusterRoleSelectors": selectors})
    await cluster.run(ClusterRoleAggregation(cluster.client, cluster.informers.of(ClusterRole)))
    rule = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
    await cluster.make(ClusterRole, "widgets", "", metadata={"labels": labels}, rules=[rule])
    await cluster.settle()
    assert (await cluster.client.get(ClusterRole, "watcher")).rules == [
        PolicyRule(verbs=["get"], api_groups=["example.com"], resources=["widgets"])
    ]
    await cluster.client.delete(ClusterRole, "widgets")
    await cluster.settle()
    assert (await cluster.client.get(ClusterRole, "watcher")).rules == []
