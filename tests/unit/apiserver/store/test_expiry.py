"""Events live for an hour after they were last written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from podling.apiserver.store.expiry import Expiry, Written, expire_events, last_time
from podling.model.types.core import Event, EventSeries
from podling.model.types.meta import ObjectMeta

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

EVENTS = "/api/v1/namespaces/default/events"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


def seconds(count: float) -> datetime:
    return NOW + timedelta(seconds=count)


def test_the_oldest_goes_first_and_a_write_begins_the_hour_anew() -> None:
    expiry = Expiry(HOUR)
    assert expiry.wait(NOW) is None
    expiry.note(Written("a", 1, NOW))
    expiry.note(Written("b", 2, seconds(10)))
    assert expiry.wait(seconds(20)) == 3580
    expiry.note(Written("a", 3, seconds(30)))
    assert expiry.oldest() == Written("b", 2, seconds(10))
    expiry.forget("b")
    assert expiry.wait(seconds(30)) == 3600


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Event(), datetime.fromtimestamp(0, UTC)),
        (Event(metadata=ObjectMeta(creation_timestamp="2026-01-02T03:04:05Z")), NOW),
        (Event(last_timestamp="2026-01-02T03:04:05Z"), NOW),
        (Event(event_time="2026-01-02T03:04:05.000000Z", last_timestamp="2026-01-01T00:00:00Z"), NOW),
        (Event(series=EventSeries(last_observed_time="2026-01-02T03:04:05.000000Z")), NOW),
    ],
)
def test_when_an_event_last_happened(event: Event, expected: datetime) -> None:
    assert last_time(event) == expected


@asynccontextmanager
async def expiring(api: Conversation, lifetime: timedelta = HOUR) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(expire_events(api.storage, api.clock, lifetime))
        yield
        task.cancel()


async def make(api: Conversation, name: str) -> None:
    body = {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}
    assert (await api.post(EVENTS, body)).status == 201


async def test_what_was_old_when_the_server_started_goes_and_watchers_see_it(api: Conversation) -> None:
    await make(api, "old")
    api.clock.move(3600)
    await make(api, "new")
    version = (await api.get(EVENTS)).body["metadata"]["resourceVersion"]
    async with await api.watch(f"{EVENTS}?watch=1&resourceVersion={version}") as watched, expiring(api):
        assert await watched.names(1) == ["DELETED old"]
    assert [item["metadata"]["name"] for item in (await api.get(EVENTS)).body["items"]] == ["new"]


async def test_what_comes_later_goes_too(api: Conversation) -> None:
    async with await api.watch(f"{EVENTS}?watch=1") as watched, expiring(api, timedelta(0)):
        await asyncio.sleep(0)
        await make(api, "a")
        assert await watched.names(2) == ["ADDED a", "DELETED a"]
