"""Webhooks that authorize: what is asked, what is kept, and what follows from an answer or from none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from podling.apiserver.admission.expressions import asked, evaluated
from podling.apiserver.authz.authorizers import ALLOW, Decision, Opinion, Unanswered, opinion_of, settled
from podling.apiserver.authz.conditions import MatchConditions
from podling.apiserver.authz.configuration import Step, WebhookSettings
from podling.apiserver.authz.modes import Chosen
from podling.apiserver.authz.webhook import WebhookAuthorizer, WebhookFailure
from podling.apiserver.cel.authorizer import Asker
from podling.apiserver.cel.evaluation import program
from podling.apiserver.request.request import RequestInfo, Selecting, User

ANN = User("ann", ("devs",))
PODS = RequestInfo("list", "", True, "", "v1", "x", "pods")
SETTINGS = WebhookSettings("", "first", "v1", 3.0, 300.0, 30.0)


class Server:
    """A webhook that says the same to all, and the time."""

    def __init__(self, *said: Mapping[str, Any] | WebhookFailure) -> None:
        self.said = list(said)
        self.asked: list[Any] = []
        self.time = 0.0

    async def send(self, body: bytes) -> bytes:
        self.asked.append(json.loads(body))
        said = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        if isinstance(said, WebhookFailure):
            raise said
        return json.dumps({"status": said}).encode()

    def authorizer(self, settings: WebhookSettings = SETTINGS, *conditions: str) -> WebhookAuthorizer:
        met = MatchConditions(conditions) if conditions else None
        return WebhookAuthorizer(settings, self.send, lambda: self.time, met)


async def told(authorizer: WebhookAuthorizer, info: RequestInfo = PODS, user: User = ANN) -> Opinion:
    return await settled(lambda: opinion_of([authorizer], user, info))


async def test_an_answer_is_kept_for_a_while() -> None:
    server = Server({"allowed": True, "reason": "because"})
    authorizer = server.authorizer()
    for _ in range(3):
        assert await told(authorizer) == Opinion(Decision.ALLOW, "because")
    assert len(server.asked) == 1
    assert authorizer.authorize(ANN, PODS).decision is Decision.ALLOW, "at once"
    server.time = 301.0
    await told(authorizer)
    assert len(server.asked) == 2
    await told(authorizer, user=User("bob"))
    assert len(server.asked) == 3


async def test_nothing_is_kept_without_a_time() -> None:
    server = Server({"denied": True})
    authorizer = server.authorizer(WebhookSettings("", "first", "v1", allowed_ttl=0.0, other_ttl=0.0))
    for _ in range(2):
        assert await told(authorizer) == Opinion(Decision.DENY)
    assert len(server.asked) == 2
    with pytest.raises(Unanswered):
        authorizer.authorize(ANN, PODS)


async def test_what_is_asked() -> None:
    server = Server({"allowed": False})
    info = PODS._replace(fields=(Selecting("a", "NotIn", ("b",)),), labels=(Selecting("c", "Exists"),))
    await told(server.authorizer(), info, User("ann", ("devs",), "7", (("k", ("v",)),)))
    await told(server.authorizer(WebhookSettings("")), RequestInfo("get", "/x"))
    first, second = server.asked
    assert first["spec"] == {
        "resourceAttributes": {
            "namespace": "x",
            "verb": "list",
            "version": "v1",
            "resource": "pods",
            "fieldSelector": {"requirements": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
            "labelSelector": {"requirements": [{"key": "c", "operator": "Exists"}]},
        },
        "user": "ann",
        "groups": ["devs"],
        "extra": {"k": ["v"]},
        "uid": "7",
    }
    assert second["apiVersion"] == "authorization.k8s.io/v1beta1"
    assert second["spec"] == {
        "nonResourceAttributes": {"path": "/x", "verb": "get"},
        "user": "ann",
        "group": ["devs"],
    }


@pytest.mark.parametrize(("denies", "decision"), [(True, Decision.DENY), (False, Decision.NO_OPINION)])
async def test_what_fails_is_refused_or_left_to_others(denies: bool, decision: Decision) -> None:
    server = Server(WebhookFailure("gone"))
    authorizer = server.authorizer(WebhookSettings("", denies=denies))
    assert await told(authorizer) == Opinion(decision, "", "gone")
    assert authorizer.metrics.opened["error"] == (not denies)
    assert await told(authorizer) == Opinion(decision, "", "gone")
    assert len(server.asked) == 2, "a failure is not kept"


async def test_both_is_a_denial_and_a_fault() -> None:
    opinion = await told(Server({"allowed": True, "denied": True, "reason": "r"}).authorizer())
    assert opinion.decision is Decision.DENY and "both allow and deny" in opinion.error


async def test_conditions_keep_questions_from_a_webhook() -> None:
    server = Server({"denied": True})
    condition = "has(request.resourceAttributes) && request.resourceAttributes.namespace != 'x'"
    authorizer = server.authorizer(SETTINGS, condition)
    assert (await told(authorizer)).decision is Decision.NO_OPINION
    assert (await told(authorizer, RequestInfo("get", "/x"))).decision is Decision.NO_OPINION
    assert server.asked == [] and authorizer.metrics.excluded == 2
    assert (await told(authorizer, PODS._replace(namespace="y"))).decision is Decision.DENY


async def test_a_condition_without_a_value_is_a_failure() -> None:
    server = Server({"denied": True})
    authorizer = server.authorizer(SETTINGS, "request.resourceAttributes.namespace == 'x'")
    opinion = await told(authorizer, RequestInfo("get", "/x"))
    assert opinion.decision is Decision.NO_OPINION
    assert "no such key: resourceAttributes" in opinion.error
    authorizer = server.authorizer(SETTINGS, "request.resourceAttributes.namespace == 'x'", "false")
    assert await told(authorizer, RequestInfo("get", "/x")) == Opinion(Decision.NO_OPINION)


async def test_a_long_condition_is_evaluated_beside_the_loop() -> None:
    server = Server({"allowed": True})
    every = "[1,2,3,4,5,6,7,8,9,10]"
    long = f"{every}.all(a, {every}.all(b, {every}.all(c, {every}.all(d, a + b + c + d > 0))))"
    authorizer = server.authorizer(SETTINGS, long)
    assert await told(authorizer) == ALLOW
    assert await told(authorizer) == ALLOW
    assert len(server.asked) == 1


@pytest.mark.parametrize("size", [1, 1_000_000])
async def test_expressions_wait_for_a_webhook(size: int) -> None:
    """On the loop, and beside it: an expression is evaluated again with the answers."""
    server = Server({"allowed": True}, {"allowed": False})
    authorizer = server.authorizer()
    ask = asked(lambda user, info: opinion_of([authorizer], user, info))
    names = {"authorizer": Asker(ANN, ask)}
    expression = (
        "authorizer.group('').resource('pods').check('get').allowed() "
        "&& !authorizer.group('').resource('pods').check('list').allowed()"
    )
    said = await evaluated(size, lambda quick: program(expression).evaluated(names, quick=quick))
    assert (said.value, said.error, len(server.asked)) == (True, "", 2)


async def test_a_webhook_that_stays_keeps_its_answers() -> None:
    server = Server({"allowed": True})
    chosen = Chosen([Step("Webhook", "first", SETTINGS)], server.authorizer)
    (authorizer,) = chosen.choose({})
    assert await settled(lambda: authorizer.authorize(ANN, PODS)) == ALLOW
    both = [Step("Webhook", "first", SETTINGS), Step("Webhook", "new", WebhookSettings("", "new"))]
    assert [chosen.put(both), chosen.put(both)] == [True, False]
    assert authorizer.authorize(ANN, PODS) == ALLOW
    assert len(server.asked) == 1
    assert [one.decisions[Decision.ALLOW] for one in chosen.authorizers] == [2, 0]
    assert chosen.put([])
    assert authorizer.authorize(ANN, PODS) == Opinion(Decision.NO_OPINION)
