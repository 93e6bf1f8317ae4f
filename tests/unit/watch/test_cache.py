"""The cache of a resource: gets, lists and watches (R-SYS-1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from podling.storage.interface import CompactedError, Event
from podling.storage.memory import MemoryStorage
from podling.watch.entry import JsonFrames

if TYPE_CHECKING:
    from unit.watch.conftest import Cluster

PODS = "/registry/pods/"


async def test_an_object_is_there_as_soon_as_its_write_is_answered(cluster: Cluster) -> None:
    revision = await cluster.apply("default/a")
    entry = cluster.cache.get(PODS + "default/a")
    assert entry
    assert (entry.revision, entry.object["metadata"]["resourceVersion"]) == (revision, str(revision))
    await cluster.delete("default/a")
    assert cluster.cache.get(PODS + "default/a") is None


async def test_the_bytes_are_those_of_the_store(cluster: Cluster) -> None:
    await cluster.apply("default/a")
    record, entry = await cluster.storage.get(PODS + "default/a"), cluster.cache.get(PODS + "default/a")
    assert record and entry and entry.value is record.value


async def test_it_is_as_new_as_the_store_whatever_was_written(cluster: Cluster) -> None:
    await cluster.storage.create("/registry/secrets/default/s", b"{}")
    assert cluster.cache.revision == cluster.storage.revision == 1


async def test_a_list_is_in_order_of_key_and_ends_with_its_prefix(cluster: Cluster) -> None:
    for name in ("b/y", "a/z", "ab/x", "a/x"):
        await cluster.apply(name)

    def names(prefix: str) -> list[str]:
        return [entry.key.removeprefix(PODS) for entry in cluster.cache.select(prefix).entries]

    assert names(PODS) == ["a/x", "a/z", "ab/x", "b/y"]
    assert names(PODS + "a/") == ["a/x", "a/z"]
    assert names(PODS + "c/") == []


async def test_a_page_says_what_remains(cluster: Cluster) -> None:
    for name in ("a/1", "a/2", "a/3", "a/4", "a/5", "b/1"):
        await cluster.apply(name)

    def page(start: str, limit: int) -> tuple[str, bool, int | None]:
        found = cluster.cache.select(PODS + "a/", PODS + start, limit)
        assert found.revision == 6
        return "".join(entry.key[-1] for entry in found.entries), found.more, found.remaining

    assert page("", 2) == ("12", True, 3)
    assert page("a/2\0", 2) == ("34", True, 1)
    assert page("a/4\0", 2) == ("5", False, 0)
    assert page("a/4", 2) == ("45", False, 0)
    assert page("a/22", 0) == ("345", False, 0)


async def test_every_state_in_the_window_can_be_listed(cluster: Cluster) -> None:
    """Whatever was created, changed and deleted since, in any page size."""
    states: dict[int, list[tuple[str, int]]] = {}

    def page(revision: int | None, start: str, limit: int) -> Any:
        return cluster.cache.select(PODS, start, limit, revision=revision)

    for step in range(40):
        name = f"default/{'abcdef'[step * step % 7 % 6]}"
        there = cluster.cache.get(PODS + name) is not None
        await (cluster.delete(name) if there and step % 3 else cluster.apply(name, str(step)))
        now = page(None, "", 0)
        states[now.revision] = [(entry.key, entry.revision) for entry in now.entries]
    for revision, state in states.items():
        for limit in (0, 1, 2):
            found, start, remaining = [], "", len(state)
            while True:
                part = page(revision, start, limit)
                found += [(entry.key, entry.revision) for entry in part.entries]
                remaining -= len(part.entries)
                assert part.remaining == remaining and part.revision == revision
                if not part.more:
                    break
                start = f"{found[-1][0]}\0"
            assert found == state


@pytest.mark.parametrize("revision", [None, 0])
async def test_a_watch_from_nowhere_begins_with_what_is_there(cluster: Cluster, revision: int | None) -> None:
    await cluster.apply("b")
    await cluster.apply("a")
    await cluster.apply("b", "red")
    watch = cluster.cache.watch(PODS, revision, bookmarks=True)
    await cluster.delete("a")
    assert await cluster.read(watch, 3) == [("ADDED", "a", 2), ("ADDED", "b", 3, "red"), ("DELETED", "a", 4)]


async def test_a_watch_from_a_revision_goes_on_after_it(cluster: Cluster) -> None:
    await cluster.apply("a")
    await cluster.apply("b")
    await cluster.apply("a", "red")
    watch = cluster.cache.watch(PODS, 1)
    await cluster.delete("b")
    assert await cluster.read(watch, 3) == [
        ("ADDED", "b", 2),
        ("MODIFIED", "a", 3, "red"),
        ("DELETED", "b", 4),
    ]


async def test_a_watch_from_the_future_waits_for_it(cluster: Cluster) -> None:
    watch = cluster.cache.watch(PODS, 2)
    for name in "abc":
        await cluster.apply(name)
    assert await cluster.read(watch, 1) == [("ADDED", "c", 3)]


async def test_initial_events_end_with_an_annotated_bookmark(cluster: Cluster) -> None:
    await cluster.apply("a")
    await cluster.apply("b")
    watch = cluster.cache.watch(PODS, 1, bookmarks=True, initial=True)
    await cluster.apply("c")
    frames = (await anext(watch)).splitlines()
    assert [json.loads(frame)["type"] for frame in frames] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    assert json.loads(frames[2])["object"]["metadata"] == {
        "resourceVersion": "2",
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_who_takes_no_bookmarks_is_not_told_where_initial_events_end(cluster: Cluster) -> None:
    await cluster.apply("a")
    assert await cluster.drain(cluster.cache.watch(PODS, initial=True)) == [("ADDED", "a", 1)]


@pytest.mark.parametrize("revision", [None, 0])
async def test_without_initial_events_a_watch_begins_now(cluster: Cluster, revision: int | None) -> None:
    await cluster.apply("a")
    watch = cluster.cache.watch(PODS, revision, initial=False)
    await cluster.apply("b")
    assert await cluster.read(watch, 1) == [("ADDED", "b", 2)]


async def test_a_watch_of_a_namespace_sees_no_other(cluster: Cluster) -> None:
    watch = cluster.cache.watch(PODS + "a/")
    await cluster.apply("ab/x")
    await cluster.apply("a/x")
    assert await cluster.read(watch, 1) == [("ADDED", "a/x", 2)]


async def test_a_selector_decides_at_every_stage(cluster: Cluster) -> None:
    """An object that starts to match is ADDED, one that ceases to is DELETED as it last matched."""
    await cluster.apply("a", "red")
    await cluster.apply("b", "blue")
    now = cluster.cache.watch(PODS, match=cluster.is_red)
    await cluster.apply("b", "red")
    await cluster.apply("a", "blue")
    await cluster.delete("b")
    await cluster.delete("a")
    later = [("ADDED", "b", 3, "red"), ("DELETED", "a", 4, "red"), ("DELETED", "b", 5, "red")]
    assert await cluster.read(now, 4) == [("ADDED", "a", 1, "red"), *later]
    assert await cluster.read(cluster.cache.watch(PODS, 2, match=cluster.is_red), 3) == later


async def test_all_watchers_are_sent_the_same_bytes(cluster: Cluster) -> None:
    one, other = cluster.cache.watch(PODS), cluster.cache.watch(PODS + "default/")
    await cluster.apply("default/a")
    assert one._queue[0] is other._queue[0]


async def test_another_representation_is_another_frames(cluster: Cluster) -> None:
    await cluster.apply("a")
    frames = JsonFrames("PartialObjectMetadata", "meta.k8s.io/v1")
    watch = cluster.cache.watch(PODS, bookmarks=True, initial=True, frames=frames)
    assert b'"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"' in await anext(watch)


async def test_bookmarks_are_sent_when_told(cluster: Cluster) -> None:
    watch, silent = cluster.cache.watch(PODS, bookmarks=True), cluster.cache.watch(PODS)
    await cluster.apply("a")
    await cluster.storage.create("/registry/secrets/default/s", b"{}")
    cluster.cache.bookmark()
    assert await cluster.read(watch, 2) == [("ADDED", "a", 1), ("BOOKMARK", "", 2)]
    assert await cluster.drain(silent) == [("ADDED", "a", 1)]


async def test_a_closed_subscription_is_forgotten(cluster: Cluster) -> None:
    watches = [cluster.cache.watch(PODS) for _ in range(2)]
    for watch in watches:
        watch.close()
    assert cluster.cache._audiences == {}


async def test_closing_the_cache_ends_its_watches(cluster: Cluster) -> None:
    watch = cluster.cache.watch(PODS)
    cluster.cache.close()
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
    await cluster.apply("a")
    assert cluster.cache.get(PODS + "a") is None
    with pytest.raises(StopAsyncIteration):
        await anext(cluster.cache.watch(PODS))


async def test_out_of_the_window_a_watch_cannot_resume(cluster: Cluster) -> None:
    await cluster.restart_cache(window=2)
    for name in "abcd":
        await cluster.apply(name)
    with pytest.raises(CompactedError) as compacted:
        cluster.cache.watch(PODS, 1)
    assert compacted.value.revision == 2
    assert await cluster.read(cluster.cache.watch(PODS, 2), 2) == [("ADDED", "c", 3), ("ADDED", "d", 4)]
    assert len(list(cluster.cache._audiences[PODS])) == 1


async def test_what_was_compacted_cannot_be_listed_but_watched_from(cluster: Cluster) -> None:
    """As in Kubernetes, whose lists of the past are etcd's and whose watches are its cache's."""
    for name in "abcd":
        await cluster.apply(name)
    await cluster.storage.compact(3)
    assert [entry.key for entry in cluster.cache.select(PODS, revision=3).entries] == [
        PODS + n for n in "abc"
    ]
    with pytest.raises(CompactedError) as compacted:
        cluster.cache.select(PODS, revision=2)
    assert compacted.value.revision == 3
    assert await cluster.read(cluster.cache.watch(PODS, 2), 2) == [("ADDED", "c", 3), ("ADDED", "d", 4)]


async def test_a_new_cache_lets_watches_resume_over_what_the_store_remembers(cluster: Cluster) -> None:
    for color in ("red", "blue", "green"):
        await cluster.apply("a", color)
    await cluster.apply("b")
    await cluster.delete("b")
    await cluster.storage.compact(2)
    await cluster.restart_cache()
    assert await cluster.read(cluster.cache.watch(PODS, 2), 3) == [
        ("MODIFIED", "a", 3, "green"),
        ("ADDED", "b", 4),
        ("DELETED", "b", 5),
    ]
    selected = cluster.cache.watch(PODS, 2, match=lambda entry: "blue" in str(entry.object))
    assert await cluster.drain(selected) == [("DELETED", "a", 3, "blue")]
    with pytest.raises(CompactedError):
        cluster.cache.watch(PODS, 1)
    assert [entry.key for entry in cluster.cache.select(PODS).entries] == [PODS + "a"]


async def test_writes_while_it_starts_are_neither_lost_nor_doubled(cluster_type: type[Cluster]) -> None:
    storage = _SlowStorage()
    slow = cluster_type(storage)
    await slow.apply("before")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(slow.cache.start())
        await asyncio.sleep(0)
        await slow.apply("before the list was taken")
        await storage.go()
        await slow.apply("while it was on its way")
        await storage.go()
        await slow.apply("before history was read")
        await storage.go()
        await slow.apply("while that was on its way")
        await storage.go()
    await slow.apply("after")
    assert [entry.key.removeprefix(PODS) for entry in slow.cache.select(PODS).entries] == [
        "after",
        "before",
        "before history was read",
        "before the list was taken",
        "while it was on its way",
        "while that was on its way",
    ]
    assert await slow.drain(slow.cache.watch(PODS, 1)) == [
        ("ADDED", "before the list was taken", 2),
        ("ADDED", "while it was on its way", 3),
        ("ADDED", "before history was read", 4),
        ("ADDED", "while that was on its way", 5),
        ("ADDED", "after", 6),
    ]


class _SlowStorage(MemoryStorage):
    """Reads only when told to go on, and answers only when told so again."""

    def __init__(self) -> None:
        super().__init__()
        self._gate = asyncio.Event()

    async def go(self) -> None:
        self._gate.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _wait(self) -> None:
        await self._gate.wait()
        self._gate.clear()

    async def list(self, prefix: str, *, after: str = "", limit: int = 0) -> Any:
        await self._wait()
        listing = await super().list(prefix, after=after, limit=limit)
        await self._wait()
        return listing

    async def history(self, prefix: str, after: int) -> Sequence[Event]:
        await self._wait()
        events = await super().history(prefix, after)
        await self._wait()
        return events


async def test_a_revision_is_waited_for_by_whoever_needs_it(cluster: Cluster) -> None:
    start = cluster.cache.revision
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(cluster.cache.reached(start + more)) for more in (0, 1, 2)]
        left = tasks.create_task(cluster.cache.reached(start + 1))
        await asyncio.sleep(0)
        assert [one.done() for one in waiting] == [True, False, False]
        left.cancel()
        for number, expected in enumerate(([True, True, False], [True, True, True])):
            await cluster.apply(f"pod-{number}")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert [one.done() for one in waiting] == expected
