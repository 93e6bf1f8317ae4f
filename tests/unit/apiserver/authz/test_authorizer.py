"""R-SYS-4: authorizers in order, and Kubernetes' words for no."""

import pytest

from podling.apiserver.authz.authorizers import ALLOW, NO_OPINION, Decision, Opinion, authorize
from podling.apiserver.request.request import RequestInfo, User, request_info
from podling.model.errors import StatusError

EVE = User("e")
INFO = request_info("GET", "/api/v1/namespaces/n/pods/b/log", {})


class Thinks:
    def __init__(self, opinion: Opinion) -> None:
        self.opinion = opinion

    def authorize(self, user: User, info: RequestInfo) -> Opinion:
        return self.opinion


DENY = Opinion(Decision.DENY, "not today")


@pytest.mark.parametrize("opinions", [[ALLOW], [NO_OPINION, ALLOW], [ALLOW, DENY]])
def test_the_first_opinion_allows(opinions: list[Opinion]) -> None:
    authorize([Thinks(opinion) for opinion in opinions], EVE, INFO)


@pytest.mark.parametrize("opinions", [[], [NO_OPINION], [DENY, ALLOW]])
def test_otherwise_it_is_refused(opinions: list[Opinion]) -> None:
    with pytest.raises(StatusError) as raised:
        authorize([Thinks(opinion) for opinion in opinions], EVE, INFO)
    assert (raised.value.code, raised.value.reason) == (403, "Forbidden")


WORDS = [
    (
        "GET",
        "/api/v1/pods",
        'pods is forbidden: User "e" cannot list resource "pods" in API group "" at the cluster scope',
    ),
    (
        "DELETE",
        "/api/v1/namespaces/n/pods/b",
        'pods "b" is forbidden: User "e" cannot delete resource "pods" in API group "" in the namespace "n"',
    ),
    (
        "GET",
        "/api/v1/namespaces/n/pods/b/log",
        'pods "b" is forbidden: User "e" cannot get resource "pods/log" in API group "" in the namespace "n"',
    ),
    (
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/n/leases",
        'leases.coordination.k8s.io is forbidden: User "e" cannot create resource "leases" in API group '
        '"coordination.k8s.io" in the namespace "n"',
    ),
    ("GET", "/openapi/v2", 'forbidden: User "e" cannot get path "/openapi/v2"'),
]


@pytest.mark.parametrize(("method", "path", "message"), WORDS)
def test_the_words_of_a_refusal(method: str, path: str, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        authorize([], EVE, request_info(method, path, {}))
    assert raised.value.message == message


def test_a_reason_is_told() -> None:
    with pytest.raises(StatusError, match="not today"):
        authorize([Thinks(DENY)], EVE, INFO)
