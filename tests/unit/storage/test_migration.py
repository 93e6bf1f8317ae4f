"""A migration between two stores: cut short, gone on with, refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from podling.storage.interface import MIGRATING, Storage, StorageClosedError, Write
from podling.storage.memory import MemoryStorage
from podling.storage.migration import (
    CLUSTER,
    MOST_BYTES,
    MOST_WRITES,
    MigrationError,
    cluster_of,
    copy,
    finish,
    groups,
)

NAMESPACE = b'{"metadata":{"uid":"one"}}'


class Failing(MemoryStorage):
    """Its power fails after some transactions."""

    left = 3

    async def commit(self, writes: Sequence[Write]) -> int:
        if not self.left:
            raise StorageClosedError("no power")
        self.left -= 1
        return await super().commit(writes)


async def cluster(uid: bytes = b"one", count: int = 500) -> MemoryStorage:
    storage = MemoryStorage()
    await storage.create(CLUSTER, NAMESPACE.replace(b"one", uid))
    for number in range(count):
        await storage.create(f"/registry/pods/default/{number:04}", b'{"n":%d}' % number)
    return storage


async def values(storage: Storage) -> Mapping[str, bytes]:
    return {record.key: record.value for record in (await storage.list("")).records}


async def test_what_was_cut_short_goes_on() -> None:
    source, target = await cluster(), Failing()
    with pytest.raises(StorageClosedError):
        await copy("one", source, target)
    begun = await values(target)
    assert begun[MIGRATING] == b"one"
    assert len(begun) == 1 + 2 * MOST_WRITES
    target.left = 100
    since = source.revision
    assert await copy("one", source, target) == (501, 501 - 2 * MOST_WRITES)
    await finish(source, target, since)
    assert await values(target) == await values(source)


async def test_a_source_that_changed_in_between_is_followed() -> None:
    source, target = await cluster(count=3), MemoryStorage()
    await copy("one", source, target)
    await source.update("/registry/pods/default/0000", b"{}", 2)
    await source.delete("/registry/pods/default/0001", 3)
    assert await copy("one", source, target) == (3, 2)
    await finish(source, target, source.revision)
    assert await values(target) == await values(source)


async def test_a_target_of_others_is_refused_and_unchanged() -> None:
    source, filled, others = await cluster(count=3), await cluster(count=1), MemoryStorage()
    before = await values(filled)
    with pytest.raises(MigrationError, match=rf"not empty: it holds 2 objects \({CLUSTER}, .*nothing was"):
        await copy("one", source, filled)
    assert await values(filled) == before
    await copy("two", await cluster(b"two", count=1), others)
    before = await values(others)
    with pytest.raises(MigrationError, match="another cluster's migration"):
        await copy("one", source, others)
    assert await values(others) == before


async def test_a_source_that_is_no_whole_cluster_is_refused() -> None:
    target, begun = MemoryStorage(), MemoryStorage()
    with pytest.raises(MigrationError, match="no namespace kube-system"):
        await cluster_of(target)
    source = await cluster()
    assert await cluster_of(source) == "one"
    await copy("one", source, begun)
    with pytest.raises(MigrationError, match="cut short"):
        await cluster_of(begun)


async def test_a_source_that_is_written_to_meanwhile_is_no_end() -> None:
    source, target = await cluster(count=3), MemoryStorage()
    since = source.revision
    await copy("one", source, target)
    await source.create("/registry/pods/default/new", b"{}")
    with pytest.raises(MigrationError, match="written to meanwhile"):
        await finish(source, target, since)
    assert MIGRATING in await values(target)


async def test_what_differs_is_counted_and_named() -> None:
    source, target = await cluster(count=3), MemoryStorage()
    await copy("one", source, target)
    record = await target.get("/registry/pods/default/0002")
    assert record is not None
    await target.update(record.key, b"other", record.revision)
    with pytest.raises(MigrationError, match=r"differ in 1 objects \(/registry/pods/default/0002\)"):
        await finish(source, target, source.revision)
    assert MIGRATING in await values(target)


def test_transactions_are_no_larger_than_etcd_takes() -> None:
    large = [Write(str(number), b"x" * (MOST_BYTES // 2), None) for number in range(5)]
    assert [len(group) for group in groups(large)] == [1] * 5
    small = [Write(str(number), b"x", None) for number in range(2 * MOST_WRITES + 1)]
    assert [len(group) for group in groups(small)] == [MOST_WRITES, MOST_WRITES, 1]
    assert list(groups([])) == []
