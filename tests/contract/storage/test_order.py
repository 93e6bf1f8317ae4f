"""What a store in this process promises beyond `storage/interface.py`: writes are made in the order in which
they are asked for, each may rest on those before it, and their answers come in that order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from contract.storage.conftest import opened
from podling.storage.interface import Event, KeyExistsError, Record, Storage, Write

POD = "/registry/pods/default/neato"


@pytest.fixture(params=["memory", "sqlite"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    async with opened(request.param, tmp_path) as store:
        yield store


async def test_writes_may_follow_each_other_without_waiting(storage: Storage) -> None:
    """A group holds writes of one key, each resting on the one before it."""
    at = storage.revision
    outcomes = await asyncio.gather(
        storage.create(POD, b"v1"),
        storage.update(POD, b"v2", at + 1),
        storage.delete(POD, at + 2),
        storage.create(POD, b"v3"),
    )
    assert list(outcomes) == [at + 1, at + 2, at + 3, at + 4]
    assert [event.previous for event in await storage.history("", at)] == [
        None,
        Record(POD, b"v1", at + 1),
        Record(POD, b"v2", at + 2),
        None,
    ]


async def test_a_transaction_may_rest_on_writes_under_way(storage: Storage) -> None:
    at = storage.revision
    outcomes = await asyncio.gather(
        storage.create("/registry/a", b"1"),
        storage.commit([Write("/registry/a", None, at + 1), Write("/registry/b", b"1", None)]),
        storage.commit([Write("/registry/c", b"1", None), Write("/registry/b", b"2", None)]),
        storage.create("/registry/c", b"2"),
        return_exceptions=True,
    )
    assert [outcomes[0], outcomes[1], outcomes[3]] == [1, 3, 4]
    assert isinstance(outcomes[2], KeyExistsError)
    assert await storage.get("/registry/c") == Record("/registry/c", b"2", at + 4)


async def test_answers_of_concurrent_writers_come_in_order_of_revision(storage: Storage) -> None:
    seen, answered = 0, []

    def watcher(revision: int, events: Sequence[Event]) -> None:
        nonlocal seen
        assert [event.revision for event in events] == list(range(seen + 1, revision + 1))
        seen = revision

    storage.watch("", watcher)

    async def write(writer: int) -> None:
        for n in range(20):
            revision = await storage.create(f"/registry/pods/{writer}-{n}", b"")
            assert revision <= seen
            answered.append(revision)

    async with asyncio.TaskGroup() as writers:
        for writer in range(8):
            writers.create_task(write(writer))
    assert answered == list(range(1, 161))
