"""The informer: list, watch, resume, and start over when told the version is too old."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import msgspec

from podling.client.client import Client
from podling.client.informer import Groups, Informer, until
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap

OK = 200

ScriptedServerType = Callable[[list[object], Callable[[], None]], Any]
Played = tuple[list[str], list[tuple[str, str]], Informer[ConfigMap]]


def config_map(name: str, version: int, value: str = "") -> dict[str, object]:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)},
        "data": {"value": value},
    }


def listing(version: int, *items: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
    body = {"kind": "ConfigMapList", "metadata": {"resourceVersion": str(version)}, "items": items}
    return OK, {}, msgspec.json.encode(body)


def frame(type_: str, obj: dict[str, object]) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


async def played(scripted: ScriptedServerType, script: list[object]) -> Played:
    done = asyncio.Event()
    server = scripted(script, done.set)
    informer = Informer(Client(server), ConfigMap, "ns")
    seen: list[str] = []

    def note(old: ConfigMap | None, new: ConfigMap | None) -> None:
        shown = [f"{o.metadata.name}@{o.metadata.resource_version}" if o else "-" for o in (old, new)]
        seen.append(" > ".join(shown))

    informer.subscribe(note)
    async with asyncio.TaskGroup() as tasks:
        runner = tasks.create_task(informer.run())
        await done.wait()
        runner.cancel()
    asked = [(method, query.get("resourceVersion", "")) for method, _, query, _ in server.asked]
    return seen, asked, informer


async def test_what_is_listed_is_added_and_changes_follow(scripted: ScriptedServerType) -> None:
    seen, asked, informer = await played(
        scripted,
        [
            listing(5, config_map("a", 3)),
            [
                frame("MODIFIED", config_map("a", 6, "new")) + frame("ADDED", config_map("b", 7)),
                frame("DELETED", config_map("a", 8)),
            ],
        ],
    )
    assert seen == ["- > a@3", "a@3 > a@6", "- > b@7", "a@6 > -"]
    assert asked == [("GET", ""), ("WATCH", "5"), ("WATCH", "8")], "a watch that ended resumes where it was"
    assert [obj.metadata.name for obj in informer.items()] == ["b"]


async def test_a_frame_may_come_in_pieces(scripted: ScriptedServerType) -> None:
    whole = frame("ADDED", config_map("a", 6))
    seen, _, _ = await played(
        scripted, [listing(5), [whole[:1], whole[1:30], whole[30:] + whole[:4], whole[4:]]]
    )
    assert seen == ["- > a@6"], "the second time it is the same version"


async def test_a_bookmark_moves_the_version_only(scripted: ScriptedServerType) -> None:
    bookmark: dict[str, object] = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "99"},
    }
    seen, asked, _ = await played(scripted, [listing(5), [frame("BOOKMARK", bookmark)]])
    assert seen == []
    assert asked[-1] == ("WATCH", "99")


async def test_a_version_too_old_lists_again_and_tells_the_difference(scripted: ScriptedServerType) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    seen, asked, _ = await played(
        scripted,
        [
            listing(5, config_map("a", 3), config_map("b", 4), config_map("c", 5)),
            [frame("ERROR", gone)],
            listing(50, config_map("a", 3), config_map("c", 40), config_map("d", 41)),
        ],
    )
    assert seen == ["- > a@3", "- > b@4", "- > c@5", "b@4 > -", "c@5 > c@40", "- > d@41"]
    assert asked == [("GET", ""), ("WATCH", "5"), ("GET", ""), ("WATCH", "50")]


class AlwaysTooOld:
    """A server in this process that never waits for anything, and is never content with a version."""

    def __init__(self) -> None:
        self.lists = 0

    async def request(self, *_: Any) -> Any:
        self.lists += 1
        if self.lists > MANY:
            raise Held
        return listing(5, config_map("a", 3))

    async def stream(self, *_: Any) -> AsyncGenerator[bytes, None]:
        yield frame("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})


MANY = 1_000


class Held(BaseException):
    """The loop was held: nobody else would ever run."""


def test_a_version_that_is_always_too_old_is_not_asked_for_without_pause(
    in_no_time: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def story() -> None:
        server = AlwaysTooOld()
        async with asyncio.TaskGroup() as tasks:
            runner = tasks.create_task(Informer(Client(server), ConfigMap, "ns").run())  # type: ignore[arg-type]
            await asyncio.sleep(60)
            runner.cancel()
        assert server.lists == 11, "50 ms after the first, then twice as long each time"

    in_no_time(story())


async def test_a_refused_watch_is_tried_again(scripted: ScriptedServerType) -> None:
    busy = StatusError(503, "ServiceUnavailable", "starting")
    seen, asked, _ = await played(scripted, [listing(5), busy, [frame("ADDED", config_map("a", 6))]])
    assert seen == ["- > a@6"]
    assert asked == [("GET", ""), ("WATCH", "5"), ("WATCH", "5"), ("WATCH", "6")]


async def test_a_late_subscriber_sees_what_is_there(scripted: ScriptedServerType) -> None:
    _, _, informer = await played(scripted, [listing(5, config_map("a", 3))])
    seen: list[str] = []
    informer.subscribe(lambda old, new: seen.append(new.metadata.name if new else "-"))
    assert seen == ["a"]


async def test_groups_follow_what_is_said_of_their_objects(scripted: ScriptedServerType) -> None:
    _, _, informer = await played(scripted, [listing(5, config_map("a", 3, "x"), config_map("b", 4, "x"))])
    groups = Groups(informer, lambda one: one.data["value"] or None)

    def names(group: str) -> list[str]:
        return [one.metadata.name for one in groups.of(group)]

    def put(name: str, version: int, value: str) -> None:
        informer._put(("ns", name), msgspec.convert(config_map(name, version, value), ConfigMap))

    assert names("x") == ["a", "b"] == list(informer.of_namespace("ns"))
    put("a", 6, "y")
    put("b", 7, "")
    assert (names("x"), names("y")) == ([], ["a"])
    informer._put(("ns", "a"), None)
    assert names("y") == [] and not groups._groups, "nothing is kept of what is gone"
    informer._put(("ns", "b"), None)
    assert not informer._objects and not list(informer.items())


async def test_who_waits_for_an_object_goes_on_when_it_is_so(scripted: ScriptedServerType) -> None:
    frames = [
        frame("MODIFIED", config_map("other", 6, "yes")),
        frame("MODIFIED", config_map("own", 7, "no")),
        frame("MODIFIED", config_map("own", 8, "yes")),
    ]
    held: list[str] = []

    def holds(seen: ConfigMap) -> bool:
        held.append(seen.metadata.resource_version)
        return seen.data["value"] == "yes"

    server = scripted([listing(5, config_map("own", 5)), frames], lambda: None)
    await until(Client(server), ConfigMap, "ns", "own", holds)
    assert held == ["5", "7", "8"]
