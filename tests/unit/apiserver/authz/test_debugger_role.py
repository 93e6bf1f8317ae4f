"""R-EPH-7, R-CLI-5: the role of examples/debugger-role.yaml lets support debug, and do nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from podling.apiserver.authz.authorizers import Decision
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.authz.roles.system_roles import system_bindings, system_roles
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import RequestInfo, User
from podling.controllers.roles import aggregated
from podling.model.codec.json import from_data
from podling.model.types.rbac import ClusterRole, PolicyRule, RoleBinding

EXAMPLE = Path(__file__).parents[4] / "examples/debugger-role.yaml"
ROY = User("roy", ("system:authenticated",))
VERBS = [
    "create",
    "delete",
    "deletecollection",
    "escalate",
    "bind",
    "impersonate",
    "get",
    "list",
    "patch",
    "update",
    "watch",
]
DEBUGS = {("pods/ephemeralcontainers", verb) for verb in ("get", "patch", "update")} | {
    ("pods/attach", verb) for verb in ("create", "get")
}


def clusters_roles() -> tuple[RbacAuthorizer, list[PolicyRule]]:
    """All roles as a cluster has them to which the example was applied, and the rules of `view`."""
    example = [one for one in yaml.safe_load_all(EXAMPLE.read_text()) if one]
    roles = system_roles() + [from_data(one, ClusterRole) for one in example if one["kind"] == "ClusterRole"]
    rbac = RbacAuthorizer()
    for role in roles:
        role.rules = aggregated(role, roles)
        rbac.changed(("", role.metadata.name), role, ClusterRole)
    for binding in system_bindings():
        rbac.changed(("", binding.metadata.name), binding, type(binding))
    (bound,) = (from_data(one, RoleBinding) for one in example if one["kind"] == "RoleBinding")
    rbac.changed((bound.metadata.namespace, bound.metadata.name), bound, RoleBinding)
    return rbac, next(role.rules for role in roles if role.metadata.name == "view")


def every_question() -> list[tuple[str, str, str]]:
    """(verb, API group, resource) of everything that is served, with subresources."""
    return [
        (verb, kind.resource.group, resource)
        for kind in KINDS
        for resource in (
            kind.resource.plural,
            *(f"{kind.resource.plural}/{sub}" for sub in kind.subresources),
        )
        for verb in VERBS
    ]


def may(rbac: RbacAuthorizer, verb: str, group: str, resource: str, namespace: str, user: Any = ROY) -> bool:
    plural, _, subresource = resource.partition("/")
    info = RequestInfo(verb, "", True, group, "v1", namespace, plural, subresource, "x")
    return rbac.authorize(user, info).decision is Decision.ALLOW


def test_roy_debugs_what_he_sees_and_does_nothing_else() -> None:
    rbac, view = clusters_roles()
    viewer = RbacAuthorizer()
    viewer.changed(("", "view"), ClusterRole(rules=view), ClusterRole)
    bound = {
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "roy"}],
    }
    viewer.changed(("default", "v"), from_data(bound, RoleBinding), RoleBinding)
    own = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
    asked = [one for one in every_question() if one[2] not in own]
    allowed = {one for one in asked if may(rbac, *one, "default")}
    seen = {one for one in asked if may(viewer, *one, "default")}
    assert ("get", "", "pods") in seen and ("get", "", "secrets") not in seen
    assert allowed - seen == {(verb, "", resource) for resource, verb in DEBUGS}
    assert {verb for verb, _, _ in seen} == {"get", "list", "watch"}
    assert len(asked) > 1000
    assert [one for one in asked if may(rbac, *one, "other")] == [], "nor anything elsewhere"


def test_roy_reads_no_secret_and_runs_nothing_in_the_pods_own_containers() -> None:
    rbac, _ = clusters_roles()
    for resource in ("secrets", "pods/exec", "pods/portforward", "pods/proxy", "nodes", "nodes/proxy"):
        assert [verb for verb in VERBS if may(rbac, verb, "", resource, "default")] == [], resource
