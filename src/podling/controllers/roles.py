"""Keeps aggregated cluster roles up to date."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import Key, gone_is_done
from podling.model.codec.json import to_data
from podling.model.selectors import from_label_selector
from podling.model.types.rbac import ClusterRole, PolicyRule

MANAGER = "clusterrole-aggregation-controller"
"""Of the rules."""


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
            applied = {"rules": [to_data(rule) for rule in rules]} if rules else {}
            with gone_is_done():
                await self._client.apply(ClusterRole, role.metadata.name, MANAGER, applied)

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
