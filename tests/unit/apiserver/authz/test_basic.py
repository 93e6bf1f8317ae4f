"""R-SYS-4: what everyone with an identity may do, as Kubernetes binds it from the start."""

import pytest

from podling.apiserver.authn.tokens import SERVICE_ACCOUNTS
from podling.apiserver.authz.authorizers import BasicAuthorizer, Decision
from podling.apiserver.request.context import ANONYMOUS
from podling.apiserver.request.request import User, request_info

ALLOW, NONE = Decision.ALLOW, Decision.NO_OPINION
ANN = User("ann", ("system:authenticated",))
ROBOT = User("system:serviceaccount:a:b", (SERVICE_ACCOUNTS, "system:authenticated"))
REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("user", "method", "path", "decision"),
    [
        (ANN, "GET", "/api", ALLOW),
        (ANN, "GET", "/apis/policy/v1", ALLOW),
        (ANN, "GET", "/openapi/v3", ALLOW),
        (ANN, "GET", "/readyz", ALLOW),
        (ANN, "GET", "/metrics", NONE),
        (ANN, "POST", "/api", NONE),
        (ANN, "POST", f"{REVIEWS}/selfsubjectaccessreviews", ALLOW),
        (ANN, "POST", f"{REVIEWS}/subjectaccessreviews", NONE),
        (ANN, "GET", "/api/v1/pods", NONE),
        (ANN, "GET", "/openid/v1/jwks", NONE),
        (ROBOT, "GET", "/openid/v1/jwks", ALLOW),
        (ANONYMOUS, "GET", "/api", NONE),
    ],
)
def test_decisions(user: User, method: str, path: str, decision: Decision) -> None:
    assert BasicAuthorizer().authorize(user, request_info(method, path, {})).decision is decision
