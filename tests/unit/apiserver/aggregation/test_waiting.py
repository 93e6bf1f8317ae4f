"""A server that hangs is waited for by so many, for so long."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from podling.apiserver.aggregation import passing
from podling.apiserver.aggregation.passing import Aggregation
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, RequestInfo
from podling.apiserver.request.response import Response
from podling.model.codec.json import from_data
from podling.model.types.apiregistration import APIService
from podling.streaming.upgrade import Address

PLACE = "/apis/a.test/v1"


class Hanging(Aggregation):
    """Nothing needs to be found."""

    def __init__(self, status: str = "True") -> None:
        objects: Any = None
        super().__init__(objects, None)
        found = {
            "metadata": {"name": "v1.a.test"},
            "spec": {"group": "a.test", "version": "v1", "service": {"namespace": "n", "name": "s"}},
            "status": {"conditions": [{"type": "Available", "status": status}]},
        }
        self.changed(("", "v1.a.test"), from_data(found, APIService), APIService)

    async def address(self, service: APIService) -> Address:
        return Address("192.0.2.1", 443)

    async def ask(self, verb: str = "get") -> Response:
        asked = self.passes(f"{PLACE}/things")
        assert asked is not None
        request = Request("GET", f"{PLACE}/things")
        now = datetime(2026, 1, 2, tzinfo=UTC)
        return await asked(RequestContext(request, "", now, info=RequestInfo(verb, request.path)))


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the server begins to answer."""
    over = asyncio.Event()

    async def passed_on(*_: object) -> Response:
        await over.wait()
        return Response(200)

    monkeypatch.setattr(passing, "passed_on", passed_on)
    return over


async def test_who_hangs_is_waited_for_by_so_many(
    over: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "MOST_WAITING", 2)
    hanging = Hanging()
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(hanging.ask()) for _ in range(3)]
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert [one.result().status for one in done] == [429]
        over.set()
    assert sorted(one.result().status for one in asked) == [200, 200, 429]
    assert (await hanging.ask()).status == 200


async def test_who_does_not_answer_in_time_is_not_waited_for(
    over: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "WITHIN", 0.0)
    hanging = Hanging()
    assert (await hanging.ask()).status == 504
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(hanging.ask("watch"))
        over.set()
    assert watching.result().status == 200


async def test_who_is_not_available_is_not_asked(over: asyncio.Event) -> None:
    answer = await Hanging("False").ask()
    assert (answer.status, answer.body) == (503, b"service unavailable\n")


def test_only_what_is_below_the_group_and_version_is_passed_on() -> None:
    hanging = Hanging()
    for path in (PLACE, f"{PLACE}/", f"{PLACE}/things"):
        assert hanging.passes(path) is not None
    for path in (
        "/apis",
        "/apis/a.test",
        "/apis/a.test/v2",
        "/api/v1/things",
        f"/x{PLACE}",
        f"{PLACE}1/things",
    ):
        assert hanging.passes(path) is None
    hanging.changed(("", "v1.a.test"), None, APIService)
    assert hanging.passes(PLACE) is None
