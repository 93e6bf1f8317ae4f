"""R-SYS-4: the roles and bindings every cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podling.controllers import all as controllers
from podling.controllers.role_data.namespace_roles import PUBLIC, SYSTEM
from podling.controllers.role_data.system_roles import SUBJECTS
from podling.controllers.roles import aggregated
from podling.model.types.core import Namespace
from podling.model.types.meta import LabelSelector, ObjectMeta
from podling.model.types.rbac import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    Subject,
)

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


async def test_every_binding_has_its_role(cluster: Cluster) -> None:
    for namespace in (SYSTEM, PUBLIC):
        await cluster.make(Namespace, namespace, "")
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    of = cluster.informers.of
    bindings: list[ClusterRoleBinding | RoleBinding]
    bindings = [*of(ClusterRoleBinding).items(), *of(RoleBinding).items()]
    roles = {
        (one.KIND, one.metadata.namespace, one.metadata.name)
        for one in (*of(ClusterRole).items(), *of(Role).items())
    }
    bound = {(one.role_ref.kind, one.metadata.namespace, one.role_ref.name) for one in bindings}
    assert bound <= roles
    assert {type(one) for one in bindings} == {ClusterRoleBinding, RoleBinding}


async def test_what_every_cluster_has(cluster: Cluster) -> None:
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    bound = await cluster.names(ClusterRoleBinding)
    assert [name for name in bound if not name.startswith("system:controller:")] == sorted(SUBJECTS)
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


async def test_a_role_joins_by_its_label_and_leaves(cluster: Cluster) -> None:
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


async def test_what_was_changed_stays(cluster: Cluster) -> None:
    await cluster.make(ClusterRole, "system:discovery", "", rules=[])
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    assert (await cluster.client.get(ClusterRole, "system:discovery")).rules == []


async def test_a_controller_may_do_what_its_work_takes(cluster: Cluster) -> None:
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    name = "system:controller:pod-garbage-collector"
    role = await cluster.client.get(ClusterRole, name)
    assert role.rules == [
        PolicyRule(verbs=["delete", "list", "watch"], api_groups=[""], resources=["pods"]),
        PolicyRule(verbs=["get", "list", "watch"], api_groups=[""], resources=["nodes"]),
        PolicyRule(verbs=["patch"], api_groups=[""], resources=["pods/status"]),
    ]
    binding = await cluster.client.get(ClusterRoleBinding, name)
    account = Subject(kind="ServiceAccount", name="pod-garbage-collector", namespace=SYSTEM)
    assert (binding.subjects, binding.role_ref.name) == ([account], name)
    assert role.metadata.labels == binding.metadata.labels == {"kubernetes.io/bootstrapping": "rbac-defaults"}
    ours = [found for found in await cluster.names(ClusterRole) if found.startswith("system:controller:")]
    assert len(ours) == 38


async def test_the_namespaces_of_the_system_have_roles_once_they_are_there(cluster: Cluster) -> None:
    await cluster.run(*controllers.roles(cluster.client, cluster.informers))
    assert await cluster.names(Role) == await cluster.names(RoleBinding) == []
    await cluster.make(Namespace, PUBLIC, "")
    await cluster.make(Namespace, "other", "")
    await cluster.settle()
    assert (
        await cluster.names(Role)
        == await cluster.names(RoleBinding)
        == ["system:controller:bootstrap-signer"]
    )
    await cluster.make(Namespace, SYSTEM, "")
    await cluster.settle()
    assert len(await cluster.names(Role)) == len(await cluster.names(RoleBinding)) == 7
    leading = await cluster.client.get(RoleBinding, "system::leader-locking-kube-scheduler", SYSTEM)
    assert [(one.kind, one.name) for one in leading.subjects] == [
        ("User", "system:kube-scheduler"),
        ("ServiceAccount", "kube-scheduler"),
    ]
    reader = await cluster.client.get(Role, "extension-apiserver-authentication-reader", SYSTEM)
    assert reader.rules[0].resource_names == ["extension-apiserver-authentication"]
