"""Who of many watchers is asked about a change (R-SYS-1, R-SYS-8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from podling.watch.audience import Only
from podling.watch.entry import Entry
from podling.watch.subscription import Subscription

if TYPE_CHECKING:
    from unit.watch.conftest import Cluster

PODS = "/registry/pods/"
MANY = 200


def color_of(pod: Any) -> str:
    color: str = pod["metadata"]["labels"]["color"]
    return color


class Asked:
    """Watchers of a color each, and how often any of them was asked about a pod."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.times = 0

    def watching(self, color: str) -> Subscription:
        return self._cluster.cache.watch(
            PODS, match=self._match(color), bookmarks=True, only=Only("color", color_of, color)
        )

    def _match(self, color: str) -> Callable[[Entry], bool]:
        def match(entry: Entry) -> bool:
            self.times += 1
            return color_of(entry.object) == color

        return match


@pytest.fixture
def asked(cluster: Cluster) -> Asked:
    return Asked(cluster)


async def test_of_many_watchers_those_are_asked_that_want_what_it_has_or_had(
    cluster: Cluster, asked: Asked
) -> None:
    watches = {color: asked.watching(color) for color in map(str, range(MANY))}
    await cluster.apply("a", "1")
    await cluster.apply("a", "2")
    await cluster.apply("a", "nobody")
    await cluster.delete("a")
    assert asked.times == 1 + 4 + 2
    assert await cluster.drain(watches["1"]) == [("ADDED", "a", 1, "1"), ("DELETED", "a", 2, "1")]
    assert await cluster.drain(watches["2"]) == [("ADDED", "a", 2, "2"), ("DELETED", "a", 3, "2")]
    assert await cluster.drain(watches["3"]) == []


async def test_all_hear_bookmarks_and_end_with_the_cache(cluster: Cluster, asked: Asked) -> None:
    watches = [asked.watching("red"), asked.watching("blue"), cluster.cache.watch(PODS, bookmarks=True)]
    await cluster.apply("a", "red")
    cluster.cache.bookmark()
    assert [event[0] for event in await cluster.read(watches[1], 1)] == ["BOOKMARK"]
    assert [event[0] for event in await cluster.read(watches[0], 2)] == ["ADDED", "BOOKMARK"]
    assert cluster.cache.watchers == 3
    watches[0].close()
    assert cluster.cache.watchers == 2
    cluster.cache.close()
    assert cluster.cache.watchers == 0 and cluster.cache._audiences == {}


async def test_one_that_reads_nothing_ends_and_the_others_go_on(cluster: Cluster, asked: Asked) -> None:
    slow, reading = asked.watching("red"), asked.watching("red")
    slow._queue_bytes = 1
    for name in "abc":
        await cluster.apply(name, "red")
    assert slow.overflowed
    assert [event[1] for event in await cluster.read(reading, 3)] == ["a", "b", "c"]
