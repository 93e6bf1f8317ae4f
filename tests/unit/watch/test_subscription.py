"""One watcher: in what pieces it is sent its frames, and its end when it does not read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator

import pytest

from podling.watch.entry import Change, Decoder, Entry, JsonFrames, SharedFrames
from podling.watch.subscription import BATCH_BYTES, Subscription

FRAMES = JsonFrames("Pod", "v1")


def _changes(*revisions: int) -> list[Change]:
    value, decoder = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}', Decoder(json.loads)
    return [Change(r, "/a", None, Entry("/a", r, value, decoder)) for r in revisions]


def _subscribe(
    backlog: Iterable[bytes] = (), since: int = 0, bookmarks: bool = False, queue_bytes: int = 1_000_000
) -> Subscription:
    return Subscription(iter(backlog), since, None, FRAMES, bookmarks, lambda ended: None, queue_bytes)


def _offer(subscription: Subscription, *revisions: int) -> None:
    subscription.offer(_changes(*revisions), SharedFrames())


async def _read(subscription: Subscription) -> list[int]:
    lines = (await anext(subscription)).splitlines()
    return [int(json.loads(line)["object"]["metadata"]["resourceVersion"]) for line in lines]


async def test_what_is_waiting_comes_in_one_batch() -> None:
    subscription = _subscribe()
    _offer(subscription, 1, 2)
    _offer(subscription, 3)
    assert await _read(subscription) == [1, 2, 3]


async def test_a_reader_that_waits_is_woken() -> None:
    subscription = _subscribe()
    async with asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(_read(subscription))
        await asyncio.sleep(0)
        assert not reader.done()
        _offer(subscription, 1)
        _offer(subscription, 2)
    assert reader.result() == [1, 2]


async def test_the_backlog_comes_before_what_happened_since() -> None:
    subscription = _subscribe([FRAMES.bookmark(1), FRAMES.bookmark(2)], since=2)
    _offer(subscription, 3)
    assert await _read(subscription) == [1, 2, 3]


async def test_the_backlog_is_made_as_it_is_read() -> None:
    made = 0

    def backlog() -> Iterator[bytes]:
        nonlocal made
        for _ in range(10):
            made += 1
            yield bytes(BATCH_BYTES // 2)

    subscription = _subscribe(backlog())
    assert made == 0
    assert len(await anext(subscription)) == BATCH_BYTES
    assert made == 2


async def test_batches_are_bounded() -> None:
    subscription = _subscribe(queue_bytes=10 * BATCH_BYTES)
    for _ in range(4):
        subscription._push(bytes(BATCH_BYTES // 2))
    assert [len(await anext(subscription)) for _ in range(2)] == [BATCH_BYTES] * 2


async def test_what_was_seen_before_is_not_sent() -> None:
    subscription = _subscribe(since=2)
    _offer(subscription, 1, 2, 3)
    assert await _read(subscription) == [3]


async def test_a_reader_that_does_not_keep_up_is_ended_and_the_memory_freed() -> None:
    frame = len(FRAMES.bookmark(1))
    subscription = _subscribe(bookmarks=True, queue_bytes=3 * frame)
    for revision in (1, 2, 3):
        subscription.bookmark(revision)
    assert not subscription.overflowed
    subscription.bookmark(4)
    assert subscription.overflowed
    with pytest.raises(StopAsyncIteration):
        await anext(subscription)


async def test_reading_makes_room() -> None:
    frame = len(FRAMES.bookmark(1))
    subscription = _subscribe(bookmarks=True, queue_bytes=2 * frame)
    for revision in range(1, 9, 2):
        subscription.bookmark(revision)
        subscription.bookmark(revision + 1)
        assert await _read(subscription) == [revision, revision + 1]


async def test_one_frame_may_be_larger_than_the_queue() -> None:
    subscription = _subscribe(bookmarks=True, queue_bytes=1)
    subscription.bookmark(1)
    assert await _read(subscription) == [1]


async def test_bookmarks_go_only_to_who_asked_and_never_back() -> None:
    silent, asked = _subscribe(), _subscribe(since=5, bookmarks=True)
    for subscription in (silent, asked):
        for revision in (4, 5, 6):
            subscription.bookmark(revision)
    assert await _read(asked) == [5, 6]
    assert silent._take() == b""


async def test_closing_ends_a_reader_that_waits_and_is_told_once() -> None:
    told: list[Subscription] = []
    subscription = Subscription(iter(()), 0, None, FRAMES, False, told.append)

    async def read_all() -> list[bytes]:
        return [batch async for batch in subscription]

    async with asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(read_all())
        await asyncio.sleep(0)
        subscription.close()
        subscription.close()
    assert reader.result() == []
    assert told == [subscription]
    _offer(subscription, 1)
    assert subscription._take() == b""
