"""R-SYS-4: the roles and bindings every cluster has."""

from __future__ import annotations

from typing import Any

from podling.controllers import all as controllers
from podling.controllers.system_roles import aggregated
from podling.model.meta import LabelSelector, ObjectMeta
from podling.model.rbac import AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule
from podling.model.system_roles import SUBJECTS, system_bindings, system_roles

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


def test_every_binding_has_its_role() -> None:
    named = {one.metadata.name for one in system_roles()}
    assert {binding.role_ref.name for binding in system_bindings()} <= named


async def test_what_every_cluster_has(cluster: Any) -> None:
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    assert await cluster.names(ClusterRoleBinding) == sorted(SUBJECTS)
    root = await cluster.client.get(ClusterRole, "cluster-admin")
    assert root.rules == [
        PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),
        PolicyRule(verbs=["*"], non_resource_urls=["*"]),
    ]
    assert root.metadata.labels == {"kubernetes.io/bootstrapping": "rbac-defaults"}

    async def may(name: str, verb: str, resource: str) -> bool:
        rules = (await cluster.client.get(ClusterRole, name)).rules
        return any(verb in rule.verbs and resource in rule.resources for rule in rules)

    table = {
        "view": (True, False, False),
        "edit": (True, True, False),
        "admin": (True, True, True),
    }
    for name, expected in table.items():
        found = [await may(name, "get", "pods"), await may(name, "create", "pods")]
        assert (*found, await may(name, "create", "roles")) == expected, name


async def test_a_role_joins_by_its_label_and_leaves(cluster: Any) -> None:
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rule = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
    await cluster.make(ClusterRole, "widgets", "", metadata={"labels": labels}, rules=[rule])
    await cluster.settle()

    async def has_widgets(name: str) -> bool:
        found = await cluster.client.get(ClusterRole, name)
        return any(rule.resources == ["widgets"] for rule in found.rules)

    assert [await has_widgets(name) for name in ("view", "edit", "admin")] == [True] * 3
    await cluster.client.delete(ClusterRole, "widgets")
    await cluster.settle()
    assert [await has_widgets(name) for name in ("view", "edit", "admin")] == [False] * 3


async def test_what_was_changed_stays(cluster: Any) -> None:
    await cluster.make(ClusterRole, "system:discovery", "", rules=[])
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    assert (await cluster.client.get(ClusterRole, "system:discovery")).rules == []
