"""R-SYS-4: who may do what before RBAC."""

import pytest

from podling.apiserver.authz.authorizers import (
    AuthenticatedAuthorizer,
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
