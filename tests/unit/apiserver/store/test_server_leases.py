"""The addresses of several API servers on one storage; that they end by themselves only etcd can show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from podling.apiserver.store import server_leases
from podling.apiserver.store.server_leases import LEASE, PREFIX, ServerLeases
from podling.storage.interface import StorageClosedError, Write
from podling.storage.memory import MemoryStorage

A, B = "192.0.2.2", "192.0.2.10"


class Heard:
    """What one server was told."""

    def __init__(self, storage: MemoryStorage, address: str) -> None:
        self.told: list[Sequence[str]] = []
        self._begun = asyncio.Event()
        self.leases = ServerLeases(storage, address, self._hear)

    def _hear(self, addresses: Sequence[str]) -> None:
        self.told.append(addresses)
        self._begun.set()

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """Once it has been told for the first time."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.leases.renew())
            await self._begun.wait()
            yield
            task.cancel()


async def test_each_knows_all_in_order_and_who_leaves_is_gone_at_once() -> None:
    storage = MemoryStorage()
    a = Heard(storage, A)
    async with a.renewing():
        assert a.told[-1] == [A]
        b = Heard(storage, B)
        async with b.renewing():
            assert a.told[-1] == b.told[-1] == [A, B]
    await a.leases.leave()
    assert a.told[-1] == b.told[-1] == [B]
    await b.leases.leave()
    assert a.told[-1] == [B], "who has left hears no more"


async def test_the_key_and_the_value_are_kube_apiservers() -> None:
    storage = MemoryStorage()
    written: list[Write] = []
    commit = storage.commit

    async def noted(writes: Sequence[Write]) -> int:
        written.extend(writes)
        return await commit(writes)

    storage.commit = noted  # type: ignore[method-assign]
    async with Heard(storage, A).renewing():
        (write,) = written
    assert (write.key, write.ttl) == (f"{PREFIX}{A}", LEASE) and write.value is not None
    said = json.loads(write.value)
    assert (said["kind"], said["apiVersion"]) == ("Endpoints", "v1")
    assert said["subsets"] == [{"addresses": [{"ip": A}]}]


async def test_a_server_of_before_with_the_same_address_is_taken_over() -> None:
    storage = MemoryStorage()
    before, now = Heard(storage, A), Heard(storage, A)
    async with before.renewing(), now.renewing():
        assert now.told[-1] == [A]


async def test_a_renewal_that_fails_is_tried_again_and_a_lost_lease_is_taken_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_leases, "RENEWED", 0.0)
    monkeypatch.setattr(server_leases, "AGAIN", 0.0)
    storage = MemoryStorage()
    a = Heard(storage, A)
    commit, refused, renewed = storage.commit, asyncio.Event(), asyncio.Event()

    async def sometimes(writes: Sequence[Write]) -> int:
        if not refused.is_set():
            refused.set()
            raise StorageClosedError("no quorum")
        revision = await commit(writes)
        renewed.set()
        return revision

    storage.commit = sometimes  # type: ignore[method-assign]
    async with a.renewing():
        await refused.wait()
        assert a.told == [[]]
        for _ in range(2):
            renewed.clear()
            await renewed.wait()
            assert a.told[-1] == [A]
            # etcd has ended it, since it could not be renewed in time.
            record = await storage.get(f"{PREFIX}{A}")
            assert record
            await commit([Write(record.key, None, record.revision)])
            assert a.told[-1] == []
