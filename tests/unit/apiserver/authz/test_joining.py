"""R-SYS-2: what nodes may do, and those who are to become nodes."""

from __future__ import annotations

import pytest

from podling.apiserver.authz.authorizers import Authorizer, opinion_of
from podling.apiserver.authz.modes import authorizers_of, by_modes
from podling.apiserver.authz.node import NodeGraph
from podling.apiserver.authz.rbac import RbacAuthorizer
from podling.apiserver.authz.roles.system_roles import (
    joining_bindings,
    joining_roles,
    system_bindings,
    system_roles,
)
from podling.apiserver.request.context import ANONYMOUS
from podling.apiserver.request.request import User, request_info
from podling.model.rules.authorization_modes import read_modes
from podling.model.types.rbac import AUTHENTICATED, ClusterRole, ClusterRoleBinding

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BOOTSTRAPPER = User("system:bootstrap:abcdef", ("system:bootstrappers", AUTHENTICATED))
NODE = User("system:node:n", ("system:nodes", AUTHENTICATED))
JOINED = User("podling:node:n", ("podling:nodes", AUTHENTICATED))
SECRET = "/api/v1/namespaces/n/secrets/s"


@pytest.fixture(scope="module")
def authorizers() -> tuple[Authorizer, ...]:
    """Those of the default modes, in a new cluster."""
    rbac = RbacAuthorizer()
    for role in (*system_roles(), *joining_roles()):
        rbac.changed(("", role.metadata.name), role, ClusterRole)
    for binding in (*system_bindings(), *joining_bindings()):
        rbac.changed(("", binding.metadata.name), binding, ClusterRoleBinding)
    return authorizers_of(by_modes("Node", "RBAC"), rbac, NodeGraph())


def may(authorizers: tuple[Authorizer, ...], user: User, method: str, path: str) -> bool:
    return opinion_of(authorizers, user, request_info(method, path, {})).decision.value == "allow"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", REQUESTS, True),
        ("GET", REQUESTS, True),
        ("GET", f"{REQUESTS}/r", True),
        ("POST", f"{REQUESTS}/r/nodeclient", True),
        ("POST", f"{REQUESTS}/r/selfnodeclient", False),
        ("PUT", f"{REQUESTS}/r/approval", False),
        ("PUT", f"{REQUESTS}/r", False),
        ("DELETE", f"{REQUESTS}/r", False),
        ("GET", "/api/v1/nodes", False),
        ("GET", "/api/v1/nodes/n", True),
        ("DELETE", "/api/v1/nodes/n", False),
        ("POST", "/apis/other/v1/certificatesigningrequests", False),
        ("GET", SECRET, False),
    ],
)
def test_who_has_a_bootstrap_token_asks_for_a_certificate(
    authorizers: tuple[Authorizer, ...], method: str, path: str, allowed: bool
) -> None:
    assert may(authorizers, BOOTSTRAPPER, method, path) is allowed


@pytest.mark.parametrize(
    ("user", "method", "path", "allowed"),
    [
        (NODE, "GET", SECRET, False),
        (NODE, "DELETE", SECRET, False),
        (NODE, "POST", f"{REQUESTS}/r/selfnodeclient", True),
        (NODE, "GET", "/metrics", False),
        (NODE, "DELETE", "/api/v1/nodes/n", False),
        (NODE, "GET", "/api/v1/nodes", False),
        (NODE, "GET", "/api/v1/pods", False),
        (NODE, "GET", "/apis/networking.k8s.io/v1/networkpolicies", False),
        (NODE, "GET", "/apis/discovery.k8s.io/v1/endpointslices", False),
        (JOINED, "DELETE", "/api/v1/nodes/n", True),
        (JOINED, "DELETE", "/api/v1/nodes/n/status", False),
        (JOINED, "DELETE", "/apis/metrics.k8s.io/v1beta1/nodes/n", False),
        (JOINED, "DELETE", "/api/v1/nodes/m", False),
        (JOINED, "DELETE", "/api/v1/nodes", False),
        (JOINED, "PATCH", "/api/v1/nodes/n", False),
        (JOINED, "DELETE", "/api/v1/namespaces/n/pods/n", False),
        (JOINED, "GET", "/api/v1/nodes", True),
        (JOINED, "GET", "/api/v1/pods", True),
        (JOINED, "GET", "/api/v1/namespaces", True),
        (JOINED, "GET", "/api/v1/services", True),
        (JOINED, "GET", "/apis/networking.k8s.io/v1/networkpolicies", True),
        (JOINED, "GET", "/apis/discovery.k8s.io/v1/endpointslices", True),
        (JOINED, "GET", SECRET, False),
        (JOINED, "GET", "/api/v1/namespaces/n/configmaps/c", False),
        (JOINED, "POST", f"{REQUESTS}", False),
        (JOINED, "POST", "/api/v1/namespaces/n/pods/p/exec", False),
        (User("podling:node:n", (AUTHENTICATED,)), "DELETE", "/api/v1/nodes/n", False),
        (User("n", ("podling:nodes", AUTHENTICATED)), "DELETE", "/api/v1/nodes/n", False),
        (User("podling:node:", ("podling:nodes", AUTHENTICATED)), "DELETE", "/api/v1/nodes", False),
        (NODE, "GET", "/api/v1/namespaces/n/configmaps/c", False),
        (User("system:node:n", (AUTHENTICATED,)), "GET", SECRET, False),
        (User("n", ("system:nodes", AUTHENTICATED)), "GET", SECRET, False),
        (User("eve", (AUTHENTICATED,)), "GET", SECRET, False),
        (User("eve", (AUTHENTICATED,)), "GET", "/apis", True),
        (ANONYMOUS, "GET", "/healthz", True),
        (ANONYMOUS, "POST", "/version", False),
        (ANONYMOUS, "GET", "/apis", False),
    ],
)
def test_what_a_new_cluster_lets_whom_do(
    authorizers: tuple[Authorizer, ...], user: User, method: str, path: str, allowed: bool
) -> None:
    assert may(authorizers, user, method, path) is allowed


@pytest.mark.parametrize(
    ("modes", "allowed", "reason"),
    [("AlwaysAllow", True, ""), ("AlwaysDeny", False, "Everything is forbidden."), ("", True, "")],
)
def test_modes(modes: str, allowed: bool, reason: str) -> None:
    authorizers = authorizers_of(by_modes(*read_modes(modes)), RbacAuthorizer(), NodeGraph())
    opinion = opinion_of(authorizers, ANONYMOUS, request_info("GET", "/x", {}))
    assert (opinion.decision.value == "allow", opinion.reason) == (allowed, reason)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Foo", 'authorization-mode "Foo" is not a valid mode'),
        ("node", 'authorization-mode "node" is not a valid mode'),
        ("Node,Node", 'authorization-mode ["Node" "Node"] has mode specified more than once'),
        ("Webhook", "authorization-mode Webhook's authorization config file not passed"),
        ("ABAC", "authorization-mode ABAC's authorization policy file not passed"),
        (
            "Foo,Bar,Node",
            '[authorization-mode "Foo" is not a valid mode, authorization-mode "Bar" is not a valid mode]',
        ),
    ],
)
def test_modes_that_there_are_not(text: str, fault: str) -> None:
    """As kube-apiserver refuses them."""
    with pytest.raises(ValueError) as raised:
        read_modes(text)
    assert str(raised.value) == fault
