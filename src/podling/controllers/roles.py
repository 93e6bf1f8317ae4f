"""Creates the default roles and bindings, and keeps aggregated cluster roles up to date."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.controllers.role_data.controller_roles import controller_bindings, controller_roles
from podling.controllers.role_data.namespace_roles import PUBLIC, SYSTEM, namespace_bindings, namespace_roles
from podling.controllers.role_data.system_roles import system_bindings, system_roles
from podling.model.selectors import from_label_selector
from podling.model.types.core import Namespace
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding


class SystemRoles:
    """Creates the cluster roles and bindings that are missing, once. A changed one stays; a deleted one is
    created again at the next start."""

    name = "system-roles"

    def __init__(
        self, client: Client, roles: Informer[ClusterRole], bindings: Informer[ClusterRoleBinding]
    ) -> None:
        """Keys are kind and name."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client = client
        self._there: dict[str, Informer[Any]] = {ClusterRole.KIND: roles, ClusterRoleBinding.KIND: bindings}
        made: list[ClusterRole | ClusterRoleBinding] = [
            *system_roles(),
            *controller_roles(),
            *system_bindings(),
            *controller_bindings(),
        ]
        self._made = {(obj.kind, obj.metadata.name): obj for obj in made}
        for key in self._made:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        kind, name = key
        if self._there[kind].get("", name) is None:
            await self._client.create(self._made[key])


class NamespaceRoles:
    """As `SystemRoles`, for the system's namespaces, once each namespace exists."""

    name = "namespace-roles"

    def __init__(
        self,
        client: Client,
        namespaces: Informer[Namespace],
        roles: Informer[Role],
        bindings: Informer[RoleBinding],
    ) -> None:
        """Keys are namespaces."""
        self.queue: WorkQueue[str] = WorkQueue()
        self._client, self._roles, self._bindings = client, roles, bindings
        namespaces.subscribe(self._changed)

    async def reconcile(self, key: str) -> None:
        there: Informer[Any]
        for there, made in ((self._roles, namespace_roles()), (self._bindings, namespace_bindings())):
            for obj in made:
                if obj.metadata.namespace == key and there.get(key, obj.metadata.name) is None:
                    await self._client.create(obj)

    def _changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if old is None and new is not None and new.metadata.name in (SYSTEM, PUBLIC):
            self.queue.add(new.metadata.name)


class ClusterRoleAggregation:
    """Gives each cluster role with an `aggregationRule` the rules of all roles it selects."""

    name = "clusterrole-aggregation"

    def __init__(self, client: Client, roles: Informer[ClusterRole]) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._roles = client, roles
        roles.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        role = self._roles.get(*key)
        if role is None or role.aggregation_rule is None:
            return
        rules = aggregated(role, self._roles.items())
        if rules != role.rules:
            with gone_is_done():
                await self._client.update(replace(role, rules=rules))

    def _changed(self, old: ClusterRole | None, new: ClusterRole | None) -> None:
        """Adds all aggregated roles, because any role may be part of any of them."""
        for role in self._roles.items():
            if role.aggregation_rule is not None:
                self.queue.add(("", role.metadata.name))


def aggregated(role: ClusterRole, roles: Iterable[ClusterRole]) -> list[PolicyRule]:
    """The rules of the roles that `role` selects, in order of its selectors and then of names, each once."""
    if role.aggregation_rule is None:
        return role.rules
    others = sorted(roles, key=lambda one: one.metadata.name)
    selectors = map(from_label_selector, role.aggregation_rule.cluster_role_selectors)
    rules: list[PolicyRule] = []
    for selector, other in product(selectors, others):
        if other.metadata.name != role.metadata.name and selector.matches(other.metadata.labels):
            for rule in other.rules:
                if rule not in rules:
                    rules.append(rule)
    return rules
