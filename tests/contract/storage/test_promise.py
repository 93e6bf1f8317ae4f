"""The promise of `storage/interface.py`, one sentence a test (R-SYS-7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from podling.storage.interface import (
    CompactedError,
    ConflictError,
    Event,
    KeyExistsError,
    Record,
    Storage,
    StorageClosedError,
    Write,
)

POD = "/registry/pods/default/neato"


async def test_a_created_value_is_found_under_its_key_at_its_revision(storage: Storage) -> None:
    revision = await storage.create(POD, b"v1")
    assert await storage.get(POD) == Record(POD, b"v1", revision)
    assert await storage.get("/registry/pods/default/other") is None


async def test_every_write_takes_the_next_revision(storage: Storage) -> None:
    assert storage.revision == 0
    assert await storage.create(POD, b"v1") == 1
    assert await storage.update(POD, b"v2", 1) == 2
    assert await storage.delete(POD, 2) == 3
    assert await storage.create(POD, b"v3") == 4
    assert storage.revision == 4


async def test_a_refused_write_takes_no_revision(storage: Storage) -> None:
    await storage.create(POD, b"v1")
    with pytest.raises(KeyExistsError) as exists:
        await storage.create(POD, b"v2")
    assert exists.value.record == Record(POD, b"v1", 1)
    for refused in (storage.update(POD, b"v2", 7), storage.delete(POD, 7)):
        with pytest.raises(ConflictError) as conflict:
            await refused
        assert (conflict.value.key, conflict.value.record) == (POD, Record(POD, b"v1", 1))
    assert storage.revision == 1


async def test_what_is_gone_can_be_neither_updated_nor_deleted(storage: Storage) -> None:
    await storage.delete(POD, await storage.create(POD, b"v1"))
    for refused in (storage.update(POD, b"v2", 1), storage.delete(POD, 2)):
        with pytest.raises(ConflictError) as conflict:
            await refused
        assert conflict.value.record is None


async def test_of_racing_creations_exactly_one_wins(storage: Storage) -> None:
    outcomes = await asyncio.gather(
        *(storage.create(POD, f"v{n}".encode()) for n in range(10)), return_exceptions=True
    )
    assert outcomes[0] == 1
    assert [type(outcome) for outcome in outcomes[1:]] == [KeyExistsError] * 9
    assert storage.revision == 1


async def test_of_racing_updates_at_one_revision_exactly_one_wins(storage: Storage) -> None:
    await storage.create(POD, b"v1")
    outcomes = await asyncio.gather(
        *(storage.update(POD, f"v{n}".encode(), 1) for n in range(10)), return_exceptions=True
    )
    assert outcomes[0] == 2
    assert [type(outcome) for outcome in outcomes[1:]] == [ConflictError] * 9
    assert await storage.get(POD) == Record(POD, b"v0", 2)


async def test_writes_may_follow_each_other_without_waiting(storage: Storage) -> None:
    """A group holds writes of one key, each resting on the one before it."""
    outcomes = await asyncio.gather(
        storage.create(POD, b"v1"),
        storage.update(POD, b"v2", 1),
        storage.delete(POD, 2),
        storage.create(POD, b"v3"),
    )
    assert list(outcomes) == [1, 2, 3, 4]
    assert [event.previous for event in await storage.history("", 0)] == [
        None,
        Record(POD, b"v1", 1),
        Record(POD, b"v2", 2),
        None,
    ]


async def test_of_a_transaction_all_writes_are_made_or_none(storage: Storage) -> None:
    assert await storage.create("/b", b"old") == 1
    assert await storage.commit([Write("/a", b"1", None), Write("/b", b"new", 1)]) == 3
    assert [await storage.get(key) for key in ("/a", "/b")] == [
        Record("/a", b"1", 2),
        Record("/b", b"new", 3),
    ]
    with pytest.raises(KeyExistsError) as exists:
        await storage.commit([Write("/c", b"1", None), Write("/a", b"2", None)])
    assert exists.value.record.key == "/a"
    with pytest.raises(ConflictError) as conflict:
        await storage.commit([Write("/c", b"1", None), Write("/b", None, 1)])
    assert (conflict.value.key, await storage.get("/c"), storage.revision) == ("/b", None, 3)
    assert await storage.commit([Write("/a", None, 2), Write("/b", None, 3)]) == 5
    assert (await storage.list("")).records == []


async def test_watchers_hear_of_a_transaction_at_once(storage: Storage) -> None:
    heard: list[list[str]] = []
    storage.watch("", lambda _, events: heard.append([event.key for event in events]))
    await storage.commit([Write("/a", b"1", None), Write("/b", b"1", None)])
    assert heard == [["/a", "/b"]]


async def test_a_transaction_may_rest_on_writes_under_way(storage: Storage) -> None:
    outcomes = await asyncio.gather(
        storage.create("/a", b"1"),
        storage.commit([Write("/a", None, 1), Write("/b", b"1", None)]),
        storage.commit([Write("/c", b"1", None), Write("/b", b"2", None)]),
        storage.create("/c", b"2"),
        return_exceptions=True,
    )
    assert [outcomes[0], outcomes[1], outcomes[3]] == [1, 3, 4]
    assert isinstance(outcomes[2], KeyExistsError)
    assert await storage.get("/c") == Record("/c", b"2", 4)


PODS = ["/registry/pods/a", "/registry/pods/a/x", "/registry/pods/ab", "/registry/pods/ab/x"]
TEMPLATE = "/registry/podtemplates/é"
PREFIXES = [
    ("", [*PODS, TEMPLATE]),
    ("/registry/pods/", PODS),
    ("/registry/pods/a", PODS),
    ("/registry/pods/a/", ["/registry/pods/a/x"]),
    ("/registry/pods/ab/", ["/registry/pods/ab/x"]),
    ("/registry/pods/%", []),
    ("/registry/pod", [*PODS, TEMPLATE]),
    ("/registry/podtemplates/", [TEMPLATE]),
    (TEMPLATE, [TEMPLATE]),
    ("/registry/z", []),
]


@pytest.mark.parametrize(("prefix", "expected"), PREFIXES)
async def test_a_prefix_is_letters_neither_a_pattern_nor_a_folder(
    storage: Storage, prefix: str, expected: list[str]
) -> None:
    watched: list[Event] = []
    storage.watch(prefix, lambda _, events: watched.extend(events))
    for key in [TEMPLATE, *reversed(PODS)]:
        await storage.create(key, key.encode())

    listing = await storage.list(prefix)
    assert [record.key for record in listing.records] == expected
    assert all(record.value == record.key.encode() for record in listing.records)
    assert listing.revision == len(PODS) + 1
    assert sorted(event.key for event in watched) == expected
    assert await storage.history(prefix, 0) == watched


async def test_a_list_goes_on_after_the_last_key_of_the_page_before(storage: Storage) -> None:
    for name in "dacb":
        await storage.create(f"/registry/pods/{name}", b"")
    await storage.create("/registry/secrets/a", b"")

    async def page(after: str, limit: int) -> str:
        listing = await storage.list("/registry/pods/", after=after, limit=limit)
        return "".join(record.key[-1] for record in listing.records)

    assert await page("", 2) == "ab"
    assert await page("/registry/pods/b", 2) == "cd"
    assert await page("/registry/pods/b", 1) == "c"
    assert await page("/registry/pods/bb", 0) == "cd"  # the last key may be gone by now
    assert await page("/registry/pods/d", 0) == ""
    assert await page("/registry/aaa", 3) == "abc"


async def test_watchers_are_called_in_order_and_before_the_answer(storage: Storage) -> None:
    told: list[str] = []
    storage.watch("/registry/pods/", lambda revision, events: told.append(f"first {revision}"))
    storage.watch("/registry/pods/", lambda revision, events: told.append(f"second {revision}"))

    async def write(name: str) -> None:
        told.append(f"answer {await storage.create(f'/registry/pods/{name}', b'')}")

    await write("a")
    await write("b")
    assert told == ["first 1", "second 1", "answer 1", "first 2", "second 2", "answer 2"]


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


async def test_a_read_in_a_watcher_finds_the_write(storage: Storage) -> None:
    revisions: list[int] = []
    storage.watch("", lambda revision, _: revisions.append(storage.revision))
    await storage.create(POD, b"v1")
    assert revisions == [1]


async def test_a_watcher_hears_of_what_is_under_its_prefix_alone(storage: Storage) -> None:
    heard: list[tuple[int, Sequence[Event]]] = []
    storage.watch("/registry/pods/", lambda revision, events: heard.append((revision, events)))
    await storage.create("/registry/nodes/a", b"1")
    assert heard == []
    assert storage.revision == 1


async def test_a_revision_yet_to_come_is_waited_for(storage: Storage) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(storage.reached(2))
        await storage.create("/registry/nodes/a", b"1")
        assert not waiting.done()
        await storage.create("/registry/nodes/b", b"1")
    await storage.reached(1)


async def test_a_watch_ends_when_told(storage: Storage) -> None:
    heard: list[int] = []
    end = storage.watch("", lambda revision, _: heard.append(revision))
    await storage.create(POD, b"v1")
    end()
    end()
    await storage.update(POD, b"v2", 1)
    assert heard == [1]


async def test_a_watcher_may_end_another(storage: Storage) -> None:
    heard: list[str] = []
    storage.watch("", lambda *_: end())
    end = storage.watch("", lambda *_: heard.append("the other"))
    await storage.create(POD, b"v1")
    assert heard == []


async def test_a_broken_watcher_keeps_nobody_from_news_or_answer(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(revision: int, events: Sequence[Event]) -> None:
        raise ZeroDivisionError

    heard: list[int] = []
    storage.watch("", broken)
    storage.watch("", lambda revision, _: heard.append(revision))
    assert await storage.create(POD, b"v1") == 1
    assert heard == [1]
    assert "ZeroDivisionError" in caplog.text


async def test_history_tells_what_a_watcher_was_told(storage: Storage) -> None:
    watched: list[Event] = []
    storage.watch("", lambda _, events: watched.extend(events))
    await storage.create(POD, b"v1")
    await storage.update(POD, b"v2", 1)
    await storage.delete(POD, 2)
    assert watched == [
        Event(1, POD, b"v1", None),
        Event(2, POD, b"v2", Record(POD, b"v1", 1)),
        Event(3, POD, None, Record(POD, b"v2", 2)),
    ]
    for after in range(5):
        assert list(await storage.history("", after)) == watched[after:]


async def test_compaction_forgets_events_but_no_newest_value(storage: Storage) -> None:
    await storage.create(POD, b"v1")
    await storage.create("/registry/pods/default/gone", b"g1")
    await storage.update(POD, b"v2", 1)
    await storage.delete("/registry/pods/default/gone", 2)
    await storage.update(POD, b"v3", 3)
    assert storage.compacted == 0
    await storage.compact(3)

    assert storage.compacted == 3
    with pytest.raises(CompactedError) as compacted:
        await storage.history("", 2)
    assert compacted.value.revision == 3
    assert list(await storage.history("", 3)) == [
        Event(4, "/registry/pods/default/gone", None, Record("/registry/pods/default/gone", b"g1", 2)),
        Event(5, POD, b"v3", Record(POD, b"v2", 3)),
    ]
    await storage.compact(5)
    assert list(await storage.history("", 5)) == []
    assert (await storage.list("")).records == [Record(POD, b"v3", 5)]
    assert storage.revision == 5


async def test_compaction_goes_neither_back_nor_ahead(storage: Storage) -> None:
    for n in range(3):
        await storage.create(f"{POD}-{n}", b"")
    await storage.compact(2)
    await storage.compact(1)
    assert storage.compacted == 2
    with pytest.raises(CompactedError):
        await storage.history("", 1)
    await storage.compact(99)
    assert storage.compacted == 3
    await storage.create(POD, b"v1")
    assert [event.revision for event in await storage.history("", 3)] == [4]


async def test_a_cancelled_writer_does_not_take_its_write_back(storage: Storage) -> None:
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(storage.create(POD, b"v1"))
        await asyncio.sleep(0)  # until the store has it
        writer.cancel()
    assert await storage.create(f"{POD}-next", b"") == 2
    assert await storage.get(POD) == Record(POD, b"v1", 1)


async def test_a_closed_store_refuses_everything(storage: Storage) -> None:
    await storage.create(POD, b"v1")
    await storage.close()
    await storage.close()
    for refused in (
        storage.get(POD),
        storage.list(""),
        storage.create("/registry/pods/x", b""),
        storage.update(POD, b"v2", 1),
        storage.delete(POD, 1),
        storage.history("", 0),
        storage.compact(1),
    ):
        with pytest.raises(StorageClosedError):
            await refused
    with pytest.raises(StorageClosedError):
        storage.watch("", lambda *_: None)


async def test_a_probe_fails_when_writes_would(storage: Storage) -> None:
    await storage.probe()
    await storage.close()
    with pytest.raises(StorageClosedError):
        await storage.probe()
