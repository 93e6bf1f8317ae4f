"""Issue 13: another server is asked whose a token is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from podling.apiserver.authn import token_webhook
from podling.apiserver.authn.authenticators import Owner
from podling.apiserver.authn.token_webhook import REMEMBERED, TokenWebhook
from podling.apiserver.request.request import User
from podling.model.errors import StatusError

ANN: dict[str, Any] = {"authenticated": True, "user": {"username": "ann", "uid": "1", "groups": ["devs"]}}
OWNER = Owner(User("ann", ("devs",), "1"), ["server"])


class Server:
    """One that knows the token `good`, or says `said` of any."""

    def __init__(self, said: Any = None, *codes: int) -> None:
        self.said, self.codes = said, list(codes)
        self.asked: list[Any] = []
        self.seconds = 0.0
        self.webhook = TokenWebhook(self.send, lambda: self.seconds, ttl=120, version="v1")

    async def send(self, body: bytes) -> tuple[int, bytes]:
        self.asked.append(json.loads(body))
        code = self.codes.pop(0) if self.codes else 200
        is_good = self.asked[-1]["spec"]["token"] == "good"
        return code, json.dumps({"status": self.said or (ANN if is_good else {})}).encode()


async def test_it_is_sent_a_review_and_its_answer_is_kept() -> None:
    server = Server()
    assert [await server.webhook.owner_of("good", ["server"]) for _ in range(3)] == [OWNER] * 3
    assert [await server.webhook.owner_of("bad", ["server"]) for _ in range(3)] == [None] * 3
    assert [one["spec"]["token"] for one in server.asked] == ["good", "bad"]
    assert server.asked[0]["apiVersion"] == "authentication.k8s.io/v1"
    assert server.asked[0]["spec"]["audiences"] == ["server"]
    server.seconds += 120
    assert await server.webhook.owner_of("good", ["server"]) == OWNER
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("said", "owner"),
    [
        ({**ANN, "audiences": ["server", "x"]}, OWNER),
        ({**ANN, "audiences": ["x"]}, None),
        ({**ANN, "audiences": []}, OWNER),
        ({**ANN, "authenticated": False}, None),
    ],
)
async def test_for_whom_a_token_is(said: Any, owner: Owner | None) -> None:
    assert await Server(said).webhook.owner_of("any", ["server"]) == owner


@pytest.mark.parametrize("server", [Server({"error": "no"}), Server(None, 403), Server({"user": 1})])
async def test_what_goes_wrong_is_a_refusal_and_not_kept(server: Server) -> None:
    for _ in range(2):
        server.codes = server.codes or ([403] if server.said is None else [])
        with pytest.raises(StatusError) as raised:
            await server.webhook.owner_of("good", ["server"])
        assert raised.value.code == 401
    assert len(server.asked) == 2


async def test_a_server_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_webhook, "FIRST_WAIT", 0)
    assert await Server(None, 500, 429).webhook.owner_of("good", ["server"]) == OWNER


async def test_a_webhook_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(body: bytes) -> tuple[int, bytes]:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(token_webhook, "PATIENCE", 0.01)
    with pytest.raises(StatusError):
        await TokenWebhook(hang, lambda: 0, ttl=1, version="v1").owner_of("good", [])


async def test_strangers_make_it_forget_no_good_token() -> None:
    server = Server()
    await server.webhook.owner_of("good", ["server"])
    for number in range(REMEMBERED + 10):
        await server.webhook.owner_of(f"bad-{number}", ["server"])
    asked = len(server.asked)
    assert await server.webhook.owner_of("good", ["server"]) == OWNER
    assert len(server.asked) == asked
    assert len(server.webhook._bad) == REMEMBERED
