"""The promise of `storage/interface.py`, one sentence a test (R-SYS-7)."""

from __future__ import annotations

import asyncio
import gc
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
    at = storage.revision
    assert storage.revision == at
    assert await storage.create(POD, b"v1") == at + 1
    assert await storage.update(POD, b"v2", at + 1) == at + 2
    assert await storage.delete(POD, at + 2) == at + 3
    assert await storage.create(POD, b"v3") == at + 4
    assert storage.revision == at + 4


async def test_a_refused_write_takes_no_revision(storage: Storage) -> None:
    at = storage.revision
    await storage.create(POD, b"v1")
    with pytest.raises(KeyExistsError) as exists:
        await storage.create(POD, b"v2")
    assert exists.value.record == Record(POD, b"v1", at + 1)
    for refused in (storage.update(POD, b"v2", at + 7), storage.delete(POD, at + 7)):
        with pytest.raises(ConflictError) as conflict:
            await refused
        assert (conflict.value.key, conflict.value.record) == (POD, Record(POD, b"v1", at + 1))
    assert storage.revision == at + 1


async def test_what_is_gone_can_be_neither_updated_nor_deleted(storage: Storage) -> None:
    at = storage.revision
    await storage.delete(POD, await storage.create(POD, b"v1"))
    for refused in (storage.update(POD, b"v2", at + 1), storage.delete(POD, at + 2)):
        with pytest.raises(ConflictError) as conflict:
            await refused
        assert conflict.value.record is None


async def test_of_racing_creations_exactly_one_wins(storage: Storage) -> None:
    at = storage.revision
    outcomes = await asyncio.gather(
        *(storage.create(POD, f"v{n}".encode()) for n in range(10)), return_exceptions=True
    )
    lost = [outcome for outcome in outcomes if isinstance(outcome, KeyExistsError)]
    assert len(lost) == 9
    assert at + 1 in outcomes
    assert storage.revision == at + 1


async def test_of_racing_updates_at_one_revision_exactly_one_wins(storage: Storage) -> None:
    at = storage.revision
    await storage.create(POD, b"v1")
    outcomes = await asyncio.gather(
        *(storage.update(POD, f"v{n}".encode(), at + 1) for n in range(10)), return_exceptions=True
    )
    assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 9
    won = outcomes.index(at + 2)
    assert await storage.get(POD) == Record(POD, f"v{won}".encode(), at + 2)


async def test_of_a_transaction_all_writes_are_made_or_none(storage: Storage) -> None:
    at = await storage.create("/registry/pods/b", b"old")
    made_and_changed = [Write("/registry/pods/a", b"1", None), Write("/registry/pods/b", b"new", at)]
    last = await storage.commit(made_and_changed)
    made = [await storage.get("/registry/pods/a"), await storage.get("/registry/pods/b")]
    assert [record and (record.key, record.value) for record in made] == [
        ("/registry/pods/a", b"1"),
        ("/registry/pods/b", b"new"),
    ]
    revisions = [record.revision for record in made if record]
    assert at < revisions[0] <= revisions[1] == last == storage.revision
    with pytest.raises(KeyExistsError) as exists:
        await storage.commit([Write("/registry/pods/c", b"1", None), Write("/registry/pods/a", b"2", None)])
    assert exists.value.record.key == "/registry/pods/a"
    with pytest.raises(ConflictError) as conflict:
        await storage.commit([Write("/registry/pods/c", b"1", None), Write("/registry/pods/b", None, at)])
    assert (conflict.value.key, await storage.get("/registry/pods/c")) == ("/registry/pods/b", None)
    assert storage.revision == last
    gone = [Write("/registry/pods/a", None, revisions[0]), Write("/registry/pods/b", None, revisions[1])]
    assert await storage.commit(gone) > last
    assert (await storage.list("")).records == []


async def test_watchers_hear_of_a_transaction_at_once(storage: Storage) -> None:
    heard: list[list[str]] = []
    storage.watch("", lambda _, events: heard.append([event.key for event in events]))
    await storage.commit([Write("/registry/pods/a", b"1", None), Write("/registry/pods/b", b"1", None)])
    assert heard == [["/registry/pods/a", "/registry/pods/b"]]


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
    at, watched = storage.revision, list[Event]()
    storage.watch(prefix, lambda _, events: watched.extend(events))
    for key in [TEMPLATE, *reversed(PODS)]:
        await storage.create(key, key.encode())

    listing = await storage.list(prefix)
    assert [record.key for record in listing.records] == expected
    assert all(record.value == record.key.encode() for record in listing.records)
    assert listing.revision == at + len(PODS) + 1
    assert sorted(event.key for event in watched) == expected
    assert await storage.history(prefix, at) == watched


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
    at, told = storage.revision, list[str]()
    storage.watch("/registry/pods/", lambda revision, events: told.append(f"first {revision}"))
    storage.watch("/registry/pods/", lambda revision, events: told.append(f"second {revision}"))

    async def write(name: str) -> None:
        told.append(f"answer {await storage.create(f'/registry/pods/{name}', b'')}")

    await write("a")
    await write("b")
    assert told == [f"{who} {at + n}" for n in (1, 2) for who in ("first", "second", "answer")]


async def test_a_read_in_a_watcher_finds_the_write(storage: Storage) -> None:
    at, revisions = storage.revision, list[int]()
    storage.watch("", lambda revision, _: revisions.append(storage.revision))
    await storage.create(POD, b"v1")
    assert revisions == [at + 1]


async def test_a_watcher_hears_of_what_is_under_its_prefix_alone(storage: Storage) -> None:
    at = storage.revision
    heard: list[tuple[int, Sequence[Event]]] = []
    storage.watch("/registry/pods/", lambda revision, events: heard.append((revision, events)))
    await storage.create("/registry/nodes/a", b"1")
    assert heard == []
    assert storage.revision == at + 1


async def test_a_revision_yet_to_come_is_waited_for(storage: Storage) -> None:
    at = storage.revision
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(storage.reached(at + 2))
        await storage.create("/registry/nodes/a", b"1")
        assert not waiting.done()
        await storage.create("/registry/nodes/b", b"1")
    await storage.reached(at + 1)


async def test_a_watch_ends_when_told(storage: Storage) -> None:
    at = storage.revision
    heard: list[int] = []
    end = storage.watch("", lambda revision, _: heard.append(revision))
    await storage.create(POD, b"v1")
    end()
    end()
    await storage.update(POD, b"v2", at + 1)
    assert heard == [at + 1]


async def test_a_watcher_may_end_another(storage: Storage) -> None:
    heard: list[str] = []
    storage.watch("", lambda *_: end())
    end = storage.watch("", lambda *_: heard.append("the other"))
    await storage.create(POD, b"v1")
    assert heard == []


async def test_a_broken_watcher_keeps_nobody_from_news_or_answer(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    at = storage.revision

    def broken(revision: int, events: Sequence[Event]) -> None:
        raise ZeroDivisionError

    heard: list[int] = []
    storage.watch("", broken)
    storage.watch("", lambda revision, _: heard.append(revision))
    assert await storage.create(POD, b"v1") == at + 1
    assert heard == [at + 1]
    assert "ZeroDivisionError" in caplog.text


async def test_history_tells_what_a_watcher_was_told(storage: Storage) -> None:
    at = storage.revision
    watched: list[Event] = []
    storage.watch("", lambda _, events: watched.extend(events))
    await storage.create(POD, b"v1")
    await storage.update(POD, b"v2", at + 1)
    await storage.delete(POD, at + 2)
    assert watched == [
        Event(at + 1, POD, b"v1", None),
        Event(at + 2, POD, b"v2", Record(POD, b"v1", at + 1)),
        Event(at + 3, POD, None, Record(POD, b"v2", at + 2)),
    ]
    for after in range(5):
        assert list(await storage.history("", at + after)) == watched[after:]


async def test_compaction_forgets_events_but_no_newest_value(storage: Storage) -> None:
    at = storage.revision
    await storage.create(POD, b"v1")
    await storage.create("/registry/pods/default/gone", b"g1")
    await storage.update(POD, b"v2", at + 1)
    await storage.delete("/registry/pods/default/gone", at + 2)
    await storage.update(POD, b"v3", at + 3)
    assert storage.compacted == 0
    await storage.compact(at + 3)

    assert storage.compacted == at + 3
    with pytest.raises(CompactedError) as compacted:
        await storage.history("", at + 2)
    assert compacted.value.revision == at + 3
    assert list(await storage.history("", at + 3)) == [
        Event(
            at + 4, "/registry/pods/default/gone", None, Record("/registry/pods/default/gone", b"g1", at + 2)
        ),
        Event(at + 5, POD, b"v3", Record(POD, b"v2", at + 3)),
    ]
    await storage.compact(at + 5)
    assert list(await storage.history("", at + 5)) == []
    assert (await storage.list("")).records == [Record(POD, b"v3", at + 5)]


async def test_compaction_goes_neither_back_nor_ahead(storage: Storage) -> None:
    at = storage.revision
    for n in range(3):
        await storage.create(f"{POD}-{n}", b"")
    await storage.compact(at + 2)
    await storage.compact(at + 1)
    assert storage.compacted == at + 2
    with pytest.raises(CompactedError):
        await storage.history("", at + 1)
    newest = storage.revision
    await storage.compact(at + 99)
    assert storage.compacted == newest
    created = await storage.create(POD, b"v1")
    assert [event.revision for event in await storage.history("", newest)] == [created]


async def test_a_cancelled_writer_does_not_take_its_write_back(storage: Storage) -> None:
    at = storage.revision
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(storage.create(POD, b"v1"))
        await asyncio.sleep(0)  # until the store has it
        writer.cancel()
    following = await storage.create(f"{POD}-next", b"")
    await storage.reached(at + 2)
    # A store that is asked by several at a time takes either first.
    first = 3 + 2 * at - following
    assert {first, following} == {at + 1, at + 2}
    assert await storage.get(POD) == Record(POD, b"v1", first)


async def test_nobody_is_told_what_a_cancelled_writer_is_refused(storage: Storage) -> None:
    unhandled: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unhandled.append(context["message"]))
    await storage.create(POD, b"v1")
    writer = loop.create_task(storage.create(POD, b"v2"))
    await asyncio.sleep(0)  # until the store has it
    writer.cancel()
    await asyncio.wait([writer])
    await storage.close()
    del writer  # whose error leads to all that it waited for
    gc.collect()
    assert not unhandled


async def test_what_is_current_is_what_was_written_last(storage: Storage) -> None:
    told: list[int] = []
    storage.watch("", lambda revision, _: told.append(revision))
    at = await storage.create(POD, b"v1")
    assert await storage.current() == at == storage.revision == told[-1]


async def test_a_closed_store_refuses_everything(storage: Storage) -> None:
    at = storage.revision
    await storage.create(POD, b"v1")
    await storage.close()
    await storage.close()
    for refused in (
        storage.get(POD),
        storage.list(""),
        storage.create("/registry/pods/x", b""),
        storage.update(POD, b"v2", at + 1),
        storage.delete(POD, at + 1),
        storage.history("", at),
        storage.compact(at + 1),
        storage.current(),
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
