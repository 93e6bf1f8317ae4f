"""Nobody gives away rights that they do not have themselves: not by a role they write, nor by one they bind.

Who may `escalate` roles, or `bind` a role, is not asked; neither is who is in `system:masters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from msgspec.structs import replace

from podling.apiserver.admission.plugin import ANY, Attributes, Handles, May
from podling.apiserver.authz.authorizers import Decision, ListedRules, settled
from podling.apiserver.authz.cover import compacted, count, told, uncovered
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.quoting import quoted, quoted_list
from podling.model.errors import not_found
from podling.model.types.meta import KubeObject
from podling.model.types.rbac import GROUP, MASTERS, ClusterRole, PolicyRule, Role, RoleRef
from podling.process.waits import aside

EVERYTHING = (
    PolicyRule(verbs=[ANY], api_groups=[ANY], resources=[ANY]),
    PolicyRule(verbs=[ANY], non_resource_urls=[ANY]),
)
AGGREGATES = "must have cluster-admin privileges to use the aggregationRule"
PLURALS = {Role.KIND: "roles", ClusterRole.KIND: "clusterroles"}
A_PIECE = 64
"""As many bytes of a body as a piece of a rule takes as long to compare."""


class RolesAndBindings(Protocol):
    """The roles and bindings there are: `podling.apiserver.authz.rbac.RbacAuthorizer`."""

    def rules_of(self, user: User, namespace: str) -> ListedRules: ...

    def rules_for(self, kind: str, namespace: str, name: str) -> Sequence[PolicyRule] | None: ...


class RoleEscalation:
    """Refuses roles with rules that their writer does not hold."""

    handles: ClassVar[Handles] = {
        f"roles.{GROUP}": ("CREATE", "UPDATE"),
        f"clusterroles.{GROUP}": ("CREATE", "UPDATE"),
    }

    def __init__(self, may: May, roles: RolesAndBindings) -> None:
        self._may, self._roles = may, roles

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        if MASTERS in attributes.user.groups or (old is not None and _only_lets_go(new, old)):
            return
        asked = _asked("escalate", attributes.resource.plural, attributes.path_name, attributes.namespace)
        opinion = await settled(lambda: self._may(attributes.user, asked))
        if opinion.decision is Decision.ALLOW:
            return
        await check_held(self._roles, attributes, new.rules)
        if any(isinstance(one, ClusterRole) and one.aggregation_rule for one in (new, old)):
            held = self._roles.rules_of(attributes.user, attributes.namespace).rules
            if uncovered(held, EVERYTHING):
                raise attributes.forbidden(AGGREGATES)


class BindingEscalation:
    """Refuses bindings to roles with rules that their writer does not hold."""

    handles: ClassVar[Handles] = {
        f"rolebindings.{GROUP}": ("CREATE", "UPDATE"),
        f"clusterrolebindings.{GROUP}": ("CREATE", "UPDATE"),
    }

    def __init__(self, may: May, roles: RolesAndBindings) -> None:
        self._may, self._roles = may, roles

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403, 404 for a role that is not there."""
        if MASTERS in attributes.user.groups or (old is not None and _only_lets_go(new, old)):
            return
        ref: RoleRef = new.role_ref
        asked = _asked("bind", PLURALS.get(ref.kind, ""), ref.name, attributes.namespace, ref.api_group)
        if ref.kind in PLURALS:
            opinion = await settled(lambda: self._may(attributes.user, asked))
            if opinion.decision is Decision.ALLOW:
                return
        rules = self._roles.rules_for(ref.kind, attributes.namespace, ref.name)
        if rules is None:
            raise not_found(attributes.resource.plural, ref.name, attributes.resource.group)
        await check_held(self._roles, attributes, rules)


async def check_held(roles: RolesAndBindings, attributes: Attributes, rules: Sequence[PolicyRule]) -> None:
    """Raises StatusError 403 with the rules that the user does not hold."""
    user = attributes.user
    held = roles.rules_of(user, attributes.namespace)
    size = A_PIECE * sum(map(count, rules))
    missing = await aside(size, uncovered, held.rules, rules)
    if not missing:
        return
    lines = sorted({told(rule) for rule in compacted(missing)})
    why = (
        f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant RBAC "
        f"permissions not currently held:\n" + "\n".join(lines)
    )
    if held.faults:
        why += f"; resolution errors: [{' '.join(held.faults)}]"
    raise attributes.forbidden(why)


def _asked(verb: str, resource: str, name: str, namespace: str, group: str = GROUP) -> RequestInfo:
    return RequestInfo(verb, "", True, group, ANY, namespace, resource, name=name)


def _only_lets_go(new: KubeObject, old: KubeObject) -> bool:
    """Whether an update only changes who owns or holds the object, so that it can be collected."""
    kept = {"owner_references": [], "finalizers": [], "managed_fields": [], "resource_version": ""}
    metadata = [replace(one.metadata, **kept) for one in (new, old)]
    return replace(new, metadata=metadata[0]) == replace(old, metadata=metadata[1])
