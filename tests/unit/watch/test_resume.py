"""Whatever is written, and whenever watchers read, break off and resume, each sees every event once and in
order, and ends with the state the cache has (R-SYS-1: watch with bookmarks and resume)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from podling.storage.interface import CompactedError
from podling.storage.memory import MemoryStorage
from podling.watch.audience import Only

if TYPE_CHECKING:
    from unit.watch.conftest import Cluster

PODS = "/registry/pods/"
WATCHERS = 3

NAMES = st.sampled_from(["a", "b", "c"])
COLORS = st.sampled_from(["red", "blue"])
WATCHER = st.integers(0, WATCHERS - 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), NAMES, COLORS),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("read"), WATCHER),
        st.tuples(st.just("break off"), WATCHER),
        st.tuples(st.just("bookmark")),
        st.tuples(st.just("compact")),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


def color_of(pod: Any) -> str:
    color: str = pod["metadata"]["labels"]["color"]
    return color


class Write(NamedTuple):
    revision: int
    name: str
    before: str | None
    after: str | None


class Watcher:
    """A client as client-go's reflector is one: lists, watches from there, resumes at the last revision it
    heard of, lists again when that is gone. Keeps the events heard since the last list."""

    def __init__(self, cluster: Cluster, color: str | None, initial: bool) -> None:
        self.cluster = cluster
        self.color = color
        self.initial = initial
        self.match = None if color is None else self._is_mine
        # Found by it, as by the whole predicate.
        self.only = None if color != "red" else Only("color", color_of, color)
        self.begin()

    def _is_mine(self, entry: Any) -> bool:
        return bool(entry.object["metadata"]["labels"]["color"] == self.color)

    def matching(self) -> dict[str, int]:
        """The revisions of what a list would show, by name."""
        every = self.cluster.cache.select(PODS).entries
        return {
            one.key.removeprefix(PODS): one.revision for one in every if not self.match or self.match(one)
        }

    def begin(self) -> None:
        """By a list and a watch, or by a watch that begins with what is there."""
        cache = self.cluster.cache
        self.listed = self.revision = cache.revision
        self.heard: list[tuple[Any, ...]] = []
        self.state: dict[str, int] = {}
        if not self.initial:
            self.state = self.matching()
        self.watch = cache.watch(
            PODS,
            self.revision,
            match=self.match,
            bookmarks=True,
            initial=True if self.initial else None,
            only=self.only,
        )
        self.initial_events = self.initial

    async def read(self) -> None:
        for event, name, revision, *_ in await self.cluster.drain(self.watch):
            if event == "BOOKMARK":
                self.initial_events = False
                self.revision = max(self.revision, revision)
            elif self.initial_events:
                self.state[name] = revision
            else:
                assert revision > self.revision, "once, and in order"
                self.heard.append((event, name, revision))
                self.revision = revision
                self.state.pop(name, None)
                if event != "DELETED":
                    self.state[name] = revision
        self.resume()

    def resume(self) -> None:
        self.watch.close()
        if self.initial_events:
            # Broken off before the initial events were all read: the client knows nothing yet.
            self.begin()
            return
        try:
            self.watch = self.cluster.cache.watch(
                PODS, self.revision, match=self.match, bookmarks=True, only=self.only
            )
        except CompactedError:
            self.begin()

    def should_have_heard(self, writes: list[Write]) -> list[tuple[Any, ...]]:
        return [seen for write in writes if write.revision > self.listed and (seen := self._sees(write))]

    def _sees(self, write: Write) -> tuple[str, str, int] | None:
        before, after = (
            color is not None and self.color in (None, color) for color in (write.before, write.after)
        )
        if not before and not after:
            return None
        event = ("MODIFIED" if before else "ADDED") if after else "DELETED"
        return event, write.name, write.revision


async def _play(cluster: Cluster, steps: list[tuple[Any, ...]]) -> None:
    # A store in use: to watch from revision 0, that of an empty store, is to ask for what is there.
    await cluster.storage.create("/registry/namespaces/default", b"")
    await cluster.cache.start()
    writes: list[Write] = []
    colors: dict[str, str] = {}
    watchers = [Watcher(cluster, *kind) for kind in ((None, False), ("red", False), ("blue", True))]
    for step in steps:
        match step:
            case "apply", name, color:
                writes.append(Write(await cluster.apply(name, color), name, colors.get(name), color))
                colors[name] = color
            case "delete", name if name in colors:
                writes.append(Write(await cluster.delete(name), name, colors.pop(name), None))
            case "read", watcher:
                await watchers[watcher].read()
            case "break off", watcher:
                watchers[watcher].resume()
            case ("bookmark",):
                cluster.cache.bookmark()
            case ("compact",):
                await cluster.storage.compact(cluster.storage.revision - 2)
            case ("restart",):
                await cluster.restart_cache(window=5)
                for one in watchers:
                    one.resume()
    for watcher in watchers:
        await watcher.read()
        await watcher.read()  # whoever was cut off in its initial events has begun again
        assert watcher.heard == watcher.should_have_heard(writes)
        assert watcher.state == watcher.matching()


@given(steps=STEPS)
def test_every_watcher_sees_every_event_once_in_order(
    cluster_type: type[Cluster], steps: list[tuple[Any, ...]]
) -> None:
    asyncio.run(_play(cluster_type(MemoryStorage(), window=5), steps))
