"""The roles and bindings in `kube-system` and `kube-public`, as a table. Pure data."""

from __future__ import annotations

from podling.apiserver.authz.roles.rules import ANNOTATIONS, COORDINATION, CORE, EVENTS, LABELS, READ, may
from podling.model.types.meta import ObjectMeta
from podling.model.types.rbac import GROUP, PolicyRule, Role, RoleBinding, RoleRef, Subject

SYSTEM, PUBLIC = "kube-system", "kube-public"
CONTROLLER = "system:controller:"
LEADER = "system::leader-locking-"
READER = "extension-apiserver-authentication-reader"
JOINING_INFO = "podling:cluster-info"
"""Lets anybody read the ConfigMap by which machines that join know the cluster, as a role of kubeadm does."""
MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"

_LEADS = (
    may(f"{READ} create update", COORDINATION, "leases"),
    may(f"{READ} create update", COORDINATION, "leasecandidates"),
)

RULES: dict[tuple[str, str], tuple[PolicyRule, ...]] = {
    (PUBLIC, f"{CONTROLLER}bootstrap-signer"): (
        may(READ, CORE, "configmaps"),
        may("update", CORE, "configmaps", "cluster-info"),
        EVENTS,
    ),
    (PUBLIC, JOINING_INFO): (may("get", CORE, "configmaps", "cluster-info"),),
    (SYSTEM, READER): (may(READ, CORE, "configmaps", "extension-apiserver-authentication"),),
    (SYSTEM, f"{LEADER}{MANAGER}"): _LEADS,
    (SYSTEM, f"{LEADER}{SCHEDULER}"): _LEADS,
    (SYSTEM, f"{CONTROLLER}bootstrap-signer"): (may(READ, CORE, "secrets"),),
    (SYSTEM, f"{CONTROLLER}cloud-provider"): (may(f"{READ} create", CORE, "configmaps"),),
    (SYSTEM, f"{CONTROLLER}token-cleaner"): (may(f"{READ} delete", CORE, "secrets"), EVENTS),
}
"""(namespace, role) → its rules."""


def _user(name: str) -> Subject:
    return Subject(kind="User", api_group=GROUP, name=f"system:{name}")


def _account(name: str) -> Subject:
    return Subject(kind="ServiceAccount", name=name, namespace=SYSTEM)


SUBJECTS: dict[tuple[str, str], tuple[str, tuple[Subject, ...]]] = {
    (PUBLIC, f"{CONTROLLER}bootstrap-signer"): (
        f"{CONTROLLER}bootstrap-signer",
        (_account("bootstrap-signer"),),
    ),
    (PUBLIC, JOINING_INFO): (JOINING_INFO, (_user("anonymous"),)),
    (SYSTEM, f"system::{READER}"): (READER, (_user(MANAGER), _user(SCHEDULER))),
    (SYSTEM, f"{LEADER}{MANAGER}"): (
        f"{LEADER}{MANAGER}",
        (_user(MANAGER), _account(MANAGER), _account("leader-election-controller")),
    ),
    (SYSTEM, f"{LEADER}{SCHEDULER}"): (f"{LEADER}{SCHEDULER}", (_user(SCHEDULER), _account(SCHEDULER))),
    **{
        (SYSTEM, f"{CONTROLLER}{name}"): (f"{CONTROLLER}{name}", (_account(name),))
        for name in ("bootstrap-signer", "cloud-provider", "token-cleaner")
    },
}
"""(namespace, binding) → its role and its subjects."""


def namespace_roles() -> list[Role]:
    return [Role(metadata=_meta(*key), rules=list(rules)) for key, rules in RULES.items()]


def namespace_bindings() -> list[RoleBinding]:
    return [
        RoleBinding(
            metadata=_meta(*key),
            subjects=list(subjects),
            role_ref=RoleRef(api_group=GROUP, kind="Role", name=role),
        )
        for key, (role, subjects) in SUBJECTS.items()
    ]


def _meta(namespace: str, name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, labels=dict(LABELS), annotations=dict(ANNOTATIONS))
