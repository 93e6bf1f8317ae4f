"""The addresses of several API servers on one storage; that they end by themselves only etcd can show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

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
        self.leases = ServerLeases(storage, address, self.told.append)


async def test_each_knows_all_in_order_and_who_leaves_is_gone_at_once() -> None:
    storage = MemoryStorage()
    a, b = Heard(storage, A), Heard(storage, B)
    await a.leases.load()
    assert a.told[-1] == [A]
    await b.leases.load()
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
    await Heard(storage, A).leases.load()
    (write,) = written
    assert (write.key, write.ttl) == (f"{PREFIX}{A}", LEASE) and write.value is not None
    said = json.loads(write.value)
    assert (said["kind"], said["apiVersion"]) == ("Endpoints", "v1")
    assert said["subsets"] == [{"addresses": [{"ip": A}]}]


async def test_a_server_of_before_with_the_same_address_is_taken_over() -> None:
    storage = MemoryStorage()
    before, now = Heard(storage, A), Heard(storage, A)
    await before.leases.load()
    await now.leases.load()
    assert now.told[-1] == [A]


async def test_a_renewal_that_fails_is_tried_again_and_a_lost_lease_is_taken_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_leases, "RENEWED", 0.0)
    monkeypatch.setattr(server_leases, "AGAIN", 0.0)
    storage = MemoryStorage()
    a = Heard(storage, A)
    await a.leases.load()
    commit, refused, renewed = storage.commit, asyncio.Event(), asyncio.Event()

    async def sometimes(writes: Sequence[Write]) -> int:
        if not refused.is_set():
            refused.set()
            raise StorageClosedError("no quorum")
        revision = await commit(writes)
        renewed.set()
        return revision

    storage.commit = sometimes  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as tasks:
        renewing = tasks.create_task(a.leases.renew())
        await refused.wait()
        # Meanwhile etcd has ended it.
        record = await storage.get(f"{PREFIX}{A}")
        if not renewed.is_set() and record is not None:
            await commit([Write(record.key, None, record.revision)])
            assert a.told[-1] == []
        renewed.clear()
        await renewed.wait()
        renewing.cancel()
    assert a.told[-1] == [A]
