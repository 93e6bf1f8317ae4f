"""Makes the roles and bindings that every cluster has, each time the server starts, before it answers.

A deleted one comes back, and what one lacks is added; what somebody has added to it stays. It is left alone
if its annotation `rbac.authorization.kubernetes.io/autoupdate` is "false".
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from podling.apiserver.authz.roles.controller_roles import controller_bindings, controller_roles
from podling.apiserver.authz.roles.namespace_roles import namespace_bindings, namespace_roles
from podling.apiserver.authz.roles.reconcile import is_left_alone, reconciled_binding, reconciled_role
from podling.apiserver.authz.roles.system_roles import (
    JOINING,
    OF_BEFORE,
    joining_bindings,
    joining_roles,
    metrics_roles,
    system_bindings,
    system_roles,
)
from podling.apiserver.store.store import Stores
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, Role

SAID = (
    "Roles and bindings are enforced from now on: a user may do what one binds him to, or a group of his. "
    "What has been written before stays. admin.conf is of the group system:masters, which may do anything; "
    "for other users, for whose certificates this was not asked so far: kubectl create clusterrolebinding "
    "NAME --clusterrole=cluster-admin --user=USER, or a lesser role"
)

TOO_WIDE = (
    "By the ClusterRoleBindings %s of an earlier version every node may read all pods, services and network "
    "policies, and remove itself. Nodes that run this version have a certificate of their own for that; once "
    "all do: kubectl delete clusterrolebindings %s"
)

log = logging.getLogger(__name__)


async def have_default_roles(objects: Stores, *, measures: bool) -> None:
    """`measures`: whether there are metrics that may be read. Raises StatusError."""
    if _is_of_before(objects):
        log.warning(SAID)
    if standing := [name for name in OF_BEFORE if objects.find(ClusterRoleBinding, "", name) is not None]:
        log.warning(TOO_WIDE, " and ".join(standing), " ".join(standing))
    # Roles first: nobody is bound to one that is not there.
    for made in (
        [
            *system_roles(),
            *joining_roles(),
            *controller_roles(),
            *namespace_roles(),
            *(metrics_roles() if measures else ()),
        ],
        [*system_bindings(), *joining_bindings(), *controller_bindings(), *namespace_bindings()],
    ):
        await asyncio.gather(*(_have(objects, obj) for obj in made))


async def _have(objects: Stores, wanted: Any) -> None:
    standing = objects.find(type(wanted), wanted.metadata.namespace, wanted.metadata.name)
    if standing is None:
        await objects.create(wanted)
        return
    if is_left_alone(standing):
        return
    is_role = isinstance(wanted, (Role, ClusterRole))
    changed = reconciled_role(standing, wanted) if is_role else reconciled_binding(standing, wanted)
    if changed is None:
        await objects.delete(standing)
        await objects.create(wanted)
    elif changed != standing:
        await objects.replace(changed)


def _is_of_before(objects: Stores) -> bool:
    """Whether there are roles, and none of those that came with their enforcement."""
    there = objects.find(ClusterRole, "", "cluster-admin")
    return there is not None and objects.find(ClusterRoleBinding, "", next(iter(JOINING))) is None
