"""When tokens are renewed, and what becomes of those that cannot be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from podling.client.client import Client
from podling.kubelet.volumes.objects import PodTokens, TokenKey, renewal_time
from podling.model.errors import StatusError, service_unavailable
from podling.model.time import rfc3339
from podling.model.types.core import TokenRequest, TokenRequestStatus
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec

BORN = datetime(2026, 11, 21, tzinfo=UTC)
KEY = TokenKey("", 3600)
POD = Pod(metadata=ObjectMeta(name="web", namespace="ns", uid="u"), spec=PodSpec(service_account_name="me"))


@pytest.mark.parametrize(
    ("life", "after"),
    [
        (timedelta(minutes=10), timedelta(minutes=8)),
        (timedelta(hours=1), timedelta(minutes=48)),
        (timedelta(hours=30), timedelta(hours=24)),
        (timedelta(days=365), timedelta(hours=24)),
    ],
)
def test_a_token_is_renewed_at_four_fifths_of_its_life_and_after_a_day_at_the_latest(
    life: timedelta, after: timedelta
) -> None:
    assert renewal_time(BORN + life, life) == BORN + after


class Issuer(Client):
    """An API server that gives tokens named by their number, unless it is down; and the clock it goes by."""

    def __init__(self) -> None:
        self.time = BORN
        self.asked: list[TokenRequest] = []
        self.down = False

    def now(self) -> datetime:
        return self.time

    async def ask(self, owner: Any, name: str, subresource: str, question: Any) -> Any:
        if self.down:
            raise service_unavailable("down", retry_after_seconds=1)
        self.asked.append(question)
        ends = self.time + timedelta(seconds=question.spec.expiration_seconds)
        question.status = TokenRequestStatus(f"token{len(self.asked)}", rfc3339(ends))
        return question


async def test_a_token_is_asked_for_once_until_it_is_time() -> None:
    server = Issuer()
    tokens = PodTokens(server, server)
    assert tokens.renew_at is None
    assert [await tokens.get(POD, KEY), await tokens.get(POD, KEY)] == ["token1", "token1"]
    assert tokens.renew_at == BORN + timedelta(minutes=48)
    assert await tokens.get(POD, TokenKey("other", 600)) == "token2"
    assert tokens.renew_at == BORN + timedelta(minutes=8)
    assert [request.spec.audiences for request in server.asked] == [[], ["other"]]
    server.time += timedelta(minutes=48)
    assert await tokens.get(POD, KEY) == "token3"


async def test_a_token_that_cannot_be_renewed_is_good_until_it_ends() -> None:
    server = Issuer()
    tokens = PodTokens(server, server)
    await tokens.get(POD, KEY)
    server.time, server.down = BORN + timedelta(minutes=50), True
    assert await tokens.get(POD, KEY) == "token1"
    assert tokens.renew_at == server.time + timedelta(minutes=1)
    server.time = BORN + timedelta(minutes=60)
    with pytest.raises(StatusError):
        await tokens.get(POD, KEY)
    server.down = False
    assert await tokens.get(POD, KEY) == "token2"


async def test_without_any_token_the_refusal_is_the_callers() -> None:
    server = Issuer()
    server.down = True
    with pytest.raises(StatusError):
        await PodTokens(server, server).get(POD, KEY)
