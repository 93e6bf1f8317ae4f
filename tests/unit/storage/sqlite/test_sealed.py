"""A data file whose values are sealed: it never holds them as they are, and is read with its keys alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podling.storage import sqlite
from podling.storage.ciphers import AesGcm
from podling.storage.interface import Event, Record
from podling.storage.sealing import PLAIN, SEALED, Key, Sealing
from podling.storage.sqlite.backup import copy, go_on
from podling.storage.sqlite.store import SqliteStorage
from podling.storage.sqlite.whole import SealedFileError

SECRETS, PODS = "/registry/secrets/", "/registry/pods/"
A, B, POD = SECRETS + "default/a", SECRETS + "default/b", PODS + "default/p"
OLD, NEW = (Key(SEALED + f"aesgcm:v1:{name}:".encode(), AesGcm(bytes(32))) for name in ("old", "new"))


def sealing(*keys: Key) -> Sealing:
    return Sealing({SECRETS: keys})


@asynccontextmanager
async def opened(path: Path, *keys: Key) -> AsyncIterator[SqliteStorage]:
    storage = await sqlite.open(path, sealing(*keys) if keys else None)
    try:
        yield storage
    finally:
        await storage.close()


def on_disk(path: Path) -> bytes:
    """The bytes of the data file and of all files beside it."""
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))


def value(text: str) -> bytes:
    return b'{"kind":"Secret","metadata":{},"data":"%b"}' % text.encode()


async def test_the_file_never_holds_what_is_secret(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    heard: list[Event] = []
    async with opened(path, NEW, OLD) as storage:
        storage.watch(SECRETS, lambda _, events: heard.extend(events))
        first = await storage.create(A, value("hush"))
        await storage.update(A, value("husher"), first)
        await storage.create(POD, value("loud"))
        assert [event.value for event in heard] == [value("hush"), value("husher")]
        found = on_disk(path)
        assert b"hush" not in found
        assert b"loud" in found
        assert b"k8s:enc:aesgcm:v1:new:" in found
        await storage.compact(storage.revision)
    assert b"hush" not in on_disk(path)
    async with opened(path, NEW) as storage:
        assert await storage.get(A) == Record(A, value("husher"), 2)
        assert not storage.is_stale(A)


async def test_the_past_is_opened_too(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path, NEW) as storage:
        await storage.create(A, value("1"))
        await storage.update(A, value("2"), 1)
        await storage.delete(A, 2)
        history = await storage.history(SECRETS, 0)
    one, two = Record(A, value("1"), 1), Record(A, value("2"), 2)
    assert history == [Event(1, A, one.value, None), Event(2, A, two.value, one), Event(3, A, None, two)]
    async with opened(path, NEW) as storage:
        assert await storage.history(SECRETS, 0) == history


async def test_keys_are_rotated_without_a_write_lost(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as storage:
        await storage.create(A, value("hush"))
        await storage.create(POD, value("loud"))
    for keys in ([OLD, *PLAIN], [NEW, OLD]):
        async with opened(path, *keys) as storage:
            record = await storage.get(A)
            assert record is not None
            assert (storage.is_stale(A), storage.is_stale(POD)) == (True, False)
            assert record.value == value("hush")
            await storage.update(A, record.value, record.revision)
            assert not storage.is_stale(A)
            await storage.compact(storage.revision)
        assert b"hush" not in on_disk(path), "what was there before is gone with its row"
    async with opened(path, NEW) as storage:
        assert await storage.get(A) == Record(A, value("hush"), 4)


async def test_what_was_replaced_needs_no_key_any_more(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path, OLD) as storage:
        await storage.create(A, value("1"))
        await storage.create(B, value("1"))
    async with opened(path, NEW, OLD) as storage:
        await storage.update(A, value("1"), 1)
        await storage.delete(B, 2)
        await storage.create(POD, value("loud"))
    async with opened(path, NEW) as storage:
        assert storage.compacted == 4
        assert (await storage.list("/")).records == [Record(POD, value("loud"), 5), Record(A, value("1"), 3)]
        assert [event.revision for event in await storage.history("/", 4)] == [5]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ([], 'sealed by aesgcm with the key "old", which --encryption-provider-config does not give'),
        ([NEW], 'sealed by aesgcm with the key "old", which --encryption-provider-config does not give'),
        ([Key(OLD.prefix, AesGcm(b"1" * 32))], "it was changed, or sealed with another key of that name"),
        ([*PLAIN], 'sealed by aesgcm with the key "old"'),
    ],
)
async def test_without_its_key_nothing_is_touched(tmp_path: Path, keys: list[Key], why: str) -> None:
    path = tmp_path / "state.db"
    async with opened(path, OLD) as storage:
        await storage.create(POD, value("loud"))
        await storage.create(A, value("hush"))
    for _ in range(2):
        with pytest.raises(SealedFileError, match=f"state.db holds {A}, which cannot be read: .*{why}"):
            await sqlite.open(path, sealing(*keys) if keys else None)
    async with opened(path, OLD) as storage:
        assert storage.revision == 2
        assert await storage.get(A) == Record(A, value("hush"), 2)


async def test_what_is_plain_is_refused_without_identity(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened(path) as storage:
        await storage.create(A, value("hush"))
    with pytest.raises(SealedFileError, match="does not give identity for its resource"):
        await sqlite.open(path, sealing(NEW))


async def test_a_backup_is_sealed_and_restored_without_a_key(tmp_path: Path) -> None:
    path, target = tmp_path / "state.db", tmp_path / "copy.db"
    async with opened(path, NEW) as storage:
        await storage.create(A, value("hush"))
        assert copy(path, target) == (1, 1)
    assert b"hush" not in on_disk(target)
    revision = go_on(target, 1)
    async with opened(target, NEW) as storage:
        assert storage.revision == revision
        assert await storage.get(A) == Record(A, value("hush"), 1)
