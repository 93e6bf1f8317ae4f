"""R-SYS-4: who may do what before RBAC."""

import pytest

from podling.apiserver.authz.authorizers import (
    AuthenticatedAuthorizer,
    BootstrapAuthorizer,
    Decision,
    MastersAuthorizer,
    PublicPathsAuthorizer,
)
from podling.apiserver.request.context import ANONYMOUS, AUTHENTICATED
from podling.apiserver.request.request import User, request_info
from podling.model.types.rbac import MASTERS

ALLOW, NONE = Decision.ALLOW, Decision.NO_OPINION
PODS = request_info("GET", "/api/v1/pods", {})


def test_masters() -> None:
    assert MastersAuthorizer().authorize(User("root", (MASTERS,)), PODS).decision is ALLOW
    assert MastersAuthorizer().authorize(User("root"), PODS).decision is NONE


def test_identities() -> None:
    assert AuthenticatedAuthorizer().authorize(User("a", (AUTHENTICATED,)), PODS).decision is ALLOW
    assert AuthenticatedAuthorizer().authorize(ANONYMOUS, PODS).decision is NONE


@pytest.mark.parametrize(
    ("method", "path", "decision"),
    [
        ("GET", "/healthz", ALLOW),
        ("HEAD", "/readyz", ALLOW),
        ("GET", "/livez", ALLOW),
        ("GET", "/version", ALLOW),
        ("POST", "/version", NONE),
        ("GET", "/metrics", NONE),
        ("GET", "/api/v1/pods", NONE),
    ],
)
def test_strangers(method: str, path: str, decision: Decision) -> None:
    assert PublicPathsAuthorizer().authorize(ANONYMOUS, request_info(method, path, {})).decision is decision


REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BOOTSTRAPPER = User("system:bootstrap:abcdef", ("system:bootstrappers", AUTHENTICATED))


@pytest.mark.parametrize(
    ("method", "path", "decision"),
    [
        ("POST", REQUESTS, ALLOW),
        ("GET", REQUESTS, ALLOW),
        ("GET", f"{REQUESTS}/r", ALLOW),
        ("POST", f"{REQUESTS}/r/nodeclient", ALLOW),
        ("POST", f"{REQUESTS}/r/selfnodeclient", NONE),
        ("PUT", f"{REQUESTS}/r/approval", NONE),
        ("PUT", f"{REQUESTS}/r", NONE),
        ("DELETE", f"{REQUESTS}/r", NONE),
        ("GET", "/api/v1/nodes", NONE),
        ("POST", "/apis/other/v1/certificatesigningrequests", NONE),
    ],
)
def test_who_has_a_bootstrap_token_asks_for_a_certificate(method: str, path: str, decision: Decision) -> None:
    info = request_info(method, path, {})
    assert BootstrapAuthorizer().authorize(BOOTSTRAPPER, info).decision is decision
    assert AuthenticatedAuthorizer().authorize(BOOTSTRAPPER, info).decision is NONE
    assert BootstrapAuthorizer().authorize(User("a", (AUTHENTICATED,)), info).decision is NONE
