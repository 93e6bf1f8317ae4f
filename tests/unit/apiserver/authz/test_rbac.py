"""R-SYS-4: RBAC decides as Kubernetes does; the peer tests ask both servers the same."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.authz.authorizers import Decision, Opinion
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.request.request import RequestInfo, User
from podling.model.codec.json import from_data
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding

EVE = User("eve", ("devs", "system:authenticated"))
GROUP = "rbac.authorization.k8s.io"


def said(type_: type[Any], rbac: RbacAuthorizer, name: str, namespace: str = "", **fields: Any) -> None:
    data = {"metadata": {"name": name, "namespace": namespace}, **fields}
    rbac.changed((namespace, name), from_data(data, type_), type_)


def role(rbac: RbacAuthorizer, name: str, *rules: dict[str, Any], namespace: str = "") -> None:
    said(Role if namespace else ClusterRole, rbac, name, namespace, rules=list(rules))


def bind(
    rbac: RbacAuthorizer, name: str, role: str, *subjects: str, namespace: str = "", kind: str = "ClusterRole"
) -> None:
    """Subjects are `KIND NAME [NAMESPACE]`."""
    made = [dict(zip(("kind", "name", "namespace"), one.split(), strict=False)) for one in subjects]
    ref = {"kind": kind, "name": role, "apiGroup": GROUP}
    type_ = RoleBinding if namespace else ClusterRoleBinding
    said(type_, rbac, name, namespace, roleRef=ref, subjects=made)


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> dict[str, Any]:
    return {
        "verbs": verbs.split(),
        "apiGroups": [group],
        "resources": resources.split(),
        "resourceNames": names.split(),
    }


def ask(
    rbac: RbacAuthorizer,
    verb: str,
    resource: str,
    *,
    group: str = "",
    namespace: str = "",
    name: str = "",
    user: User = EVE,
) -> Opinion:
    kind, _, subresource = resource.partition("/")
    return rbac.authorize(user, RequestInfo(verb, "", True, group, "v1", namespace, kind, subresource, name))


def allows(rbac: RbacAuthorizer, *args: Any, **kwargs: Any) -> bool:
    return ask(rbac, *args, **kwargs).decision is Decision.ALLOW


@pytest.mark.parametrize(
    ("resources", "asked", "allowed"),
    [
        ("pods", "pods", True),
        ("pods", "pods/log", False),
        ("pods/log", "pods/log", True),
        ("pods/log", "pods", False),
        ("pods/*", "pods/log", False),
        ("pods/*", "pods", False),
        ("*/log", "pods/log", True),
        ("*/log", "pods", False),
        ("*/log", "pods/log/more", False),
        ("*", "pods/log", True),
        ("*", "pods", True),
    ],
)
def test_subresources(resources: str, asked: str, allowed: bool) -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", rule("get", resources))
    bind(rbac, "b", "r", "User eve")
    assert allows(rbac, "get", asked) is allowed


def test_verbs_groups_and_names() -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", rule("get", "pods", names="a b"), rule("*", "jobs", "batch"), rule("list", "jobs", "*"))
    bind(rbac, "b", "r", "Group devs")
    assert allows(rbac, "get", "pods", name="a", namespace="n")
    assert not allows(rbac, "get", "pods", name="c", namespace="n")
    assert not allows(rbac, "get", "pods", namespace="n")
    assert allows(rbac, "delete", "jobs", group="batch")
    assert allows(rbac, "list", "jobs", group="other")
    assert not allows(rbac, "delete", "jobs", group="other")
    assert not allows(rbac, "get", "pods", name="a", user=User("eve"))


def test_a_role_binding_is_for_its_namespace() -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", rule("get", "pods"), {"verbs": ["get"], "nonResourceURLs": ["/metrics"]})
    role(rbac, "r", rule("get", "secrets"), namespace="n")
    bind(rbac, "cluster", "r", "User eve", namespace="n")
    bind(rbac, "own", "r", "User eve", namespace="n", kind="Role")
    assert allows(rbac, "get", "pods", namespace="n")
    assert allows(rbac, "get", "secrets", namespace="n")
    assert not allows(rbac, "get", "pods", namespace="other")
    assert not allows(rbac, "get", "pods")
    assert rbac.authorize(EVE, RequestInfo("get", "/metrics")).decision is Decision.NO_OPINION


@pytest.mark.parametrize(
    ("subject", "user", "namespace", "allowed"),
    [
        ("ServiceAccount a n", "system:serviceaccount:n:a", "", True),
        ("ServiceAccount a n", "system:serviceaccount:m:a", "", False),
        ("ServiceAccount a", "system:serviceaccount:n:a", "n", True),
        ("ServiceAccount a", "system:serviceaccount::a", "", False),
        ("User system:serviceaccount:n:a", "system:serviceaccount:n:a", "", True),
        ("ServiceAccount eve n", "eve", "", False),
        ("Group eve", "eve", "", False),
    ],
)
def test_subjects(subject: str, user: str, namespace: str, allowed: bool) -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", rule("get", "pods"))
    bind(rbac, "b", "r", subject, namespace=namespace)
    assert allows(rbac, "get", "pods", namespace="n", user=User(user)) is allowed


@pytest.mark.parametrize(
    ("url", "path", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/", False),
        ("/healthz/*", "/healthz/etcd", True),
        ("/healthz/*", "/healthz", False),
        ("/healthz*", "/healthzes", True),
        ("/a**", "/ab", True),
        ("*", "/anything", True),
        ("/*", "/", True),
        ("/a*b", "/axb", False),
        ("/a*b", "/a*b", True),
    ],
)
def test_paths(url: str, path: str, allowed: bool) -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", {"verbs": ["get"], "nonResourceURLs": [url]})
    bind(rbac, "b", "r", "User eve")
    assert (rbac.authorize(EVE, RequestInfo("get", path)).decision is Decision.ALLOW) is allowed
    assert rbac.authorize(EVE, RequestInfo("post", path)).decision is Decision.NO_OPINION


def test_the_reasons() -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", rule("get", "pods"))
    role(rbac, "r2", rule("get", "secrets"), namespace="n")
    bind(rbac, "b", "r", "User bob", "Group devs", "User eve")
    bind(rbac, "b2", "r2", "ServiceAccount a", namespace="n", kind="Role")
    account = User("system:serviceaccount:n:a")
    told = ask(rbac, "get", "pods").reason
    assert told == 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "devs"'
    told = ask(rbac, "get", "secrets", namespace="n", user=account).reason
    assert told == 'RBAC: allowed by RoleBinding "b2/n" of Role "r2" to ServiceAccount "a/n"'
    assert ask(rbac, "list", "pods") == Opinion(Decision.NO_OPINION)


def test_roles_that_are_missing_are_told_to_who_is_refused() -> None:
    rbac = RbacAuthorizer()
    bind(rbac, "b", "gone", "User eve")
    missing = f'clusterrole.{GROUP} "gone" not found'
    assert ask(rbac, "get", "pods", namespace="n").reason == f"RBAC: {missing}"
    bind(rbac, "b", "gone too", "User eve", namespace="n", kind="Role")
    both = f'RBAC: [{missing}, role.{GROUP} "gone too" not found]'
    assert ask(rbac, "get", "pods", namespace="n").reason == both
    assert rbac.rules_of(EVE, "").faults == [missing]
    role(rbac, "gone", rule("get", "pods"))
    assert allows(rbac, "get", "pods", namespace="n")


def test_what_changes_counts_at_once() -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", rule("get", "pods"))
    bind(rbac, "b", "r", "User eve", "User eve", "User bob")
    assert allows(rbac, "get", "pods")
    role(rbac, "r", rule("list", "pods"))
    assert (allows(rbac, "get", "pods"), allows(rbac, "list", "pods")) == (False, True)
    bind(rbac, "b", "r", "User bob")
    assert not allows(rbac, "list", "pods")
    assert allows(rbac, "list", "pods", user=User("bob"))
    rbac.changed(("", "b"), None, ClusterRoleBinding)
    rbac.changed(("", "r"), None, ClusterRole)
    assert ask(rbac, "list", "pods", user=User("bob")) == Opinion(Decision.NO_OPINION)
    assert rbac.rules_of(User("bob"), "").rules == []


def test_what_is_long_is_answered_and_not_kept() -> None:
    rbac = RbacAuthorizer()
    role(rbac, "r", rule("*", "*", "*"), {"verbs": ["*"], "nonResourceURLs": ["*"]})
    bind(rbac, "b", "r", "User eve")
    for name in ("pods", "p" * 5000):
        assert allows(rbac, "get", name)
        assert rbac.authorize(EVE, RequestInfo("get", f"/{name}")).decision is Decision.ALLOW
    assert (rbac.remembered, rbac.remembered_paths) == (1, 1)
