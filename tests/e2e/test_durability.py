"""R-SYS-7: `kill -9` at any moment, 200 times, while clients write and watch: nothing acknowledged is lost.

Every writer has names of its own and writes them one request after the other, so that at most one write of
each is in doubt when the server dies: it must be there whole, or not at all. When to die is drawn from what
clients see (a request about to be sent, an answer, an event), never from a clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

PROGRAM = Path(__file__).with_name("api_server.py")
NAMESPACES, CONFIG_MAPS = "/api/v1/namespaces", "/api/v1/namespaces/default/configmaps"
LIVES = 200
WRITERS, NAMES, WATCHERS = 6, 4, 3
LAST = "the-last"
MOMENTS = ("request", "answer", "event")
LONGEST_RUN = 240
"""Seconds; ten times what it takes."""
LONGEST_LIFE = 90
"""Requests or answers; of events there are as many for every watcher."""
PADDING = 20_000
"""Bytes of some values: several pages of the data file, which a crash could tear apart."""
JSON_PATCH, APPLY_PATCH = "application/json-patch+json", "application/apply-patch+yaml"
MERGE_PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")


class State(NamedTuple):
    """What stands under a name: `value` is None when nothing does. No revision, when nobody has said it."""

    value: str | None = None
    revision: int | None = None


def manifest(name: str, value: str) -> dict[str, Any]:
    """The value in several places, to tell half a write from a whole one."""
    padding = value * (PADDING // len(value)) if value.endswith("0") else value
    metadata = {"name": name, "labels": {"value": value}}
    data = {"value": value, "padding": padding}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def state_of(obj: dict[str, Any]) -> State:
    """The state an object is in, which must be a whole one."""
    metadata, value = obj["metadata"], obj["data"]["value"]
    whole = manifest(metadata["name"], value)
    assert metadata["labels"] == whole["metadata"]["labels"]
    assert obj["data"] == whole["data"]
    return State(value, int(metadata["resourceVersion"]))


@dataclass
class Ledger:
    """What clients know for certain: every state that was acknowledged, or found after a restart."""

    history: dict[str, list[State]] = field(default_factory=dict)
    in_doubt: dict[str, str | None] = field(default_factory=dict)
    """By name the value the write under way would leave there."""
    newest: int = 0
    """The newest revision any client has heard of."""

    def standing(self, name: str) -> State:
        return self.history[name][-1] if name in self.history else State()

    def hear(self, revision: int) -> None:
        self.newest = max(self.newest, revision)

    def settle(self, name: str, state: State) -> None:
        self.history.setdefault(name, []).append(state)
        self.in_doubt.pop(name, None)
        self.hear(state.revision or 0)

    def check(self, found: dict[str, State], revision: int) -> None:
        """Compare with all that is there after a restart, and settle what was in doubt."""
        assert revision >= self.newest, "resource versions went back"
        for name in found.keys() | self.history.keys() | self.in_doubt.keys():
            state, certain = found.get(name, State()), self.standing(name)
            if name in self.in_doubt and state.value == self.in_doubt[name] != certain.value:
                assert state.revision is None or state.revision > (certain.revision or 0)
                self.settle(name, state)
            else:
                assert state == certain, f"{name} is not as it was acknowledged"
        self.in_doubt.clear()
        self.hear(revision)


class Server:
    """The API server in its present life, which ends at a moment that clients see."""

    def __init__(self, session: aiohttp.ClientSession, said: asyncio.StreamReader) -> None:
        self._session = session
        self._said = said
        self._pid = 0
        self._url = ""
        self._left: dict[str, int] = {}
        self.alive = False

    async def start(self) -> None:
        self._pid = await self._hear("started")

    async def serve(self) -> None:
        self._url = f"http://127.0.0.1:{await self._hear('serving')}"
        self.alive, self._left = True, {}

    def die_at(self, moment: str, count: int) -> None:
        self._left = {moment: count}

    def seen(self, moment: str) -> None:
        if moment in self._left:
            self._left[moment] -= 1
            if self._left[moment] == 0:
                self.kill()

    def kill(self) -> None:
        self.alive = False
        os.kill(self._pid, signal.SIGKILL)

    async def request(self, method: str, target: str, body: Any = None, content_type: str = "") -> Any:
        """Raises aiohttp.ClientError when the server dies meanwhile."""
        headers = {"Content-Type": content_type or "application/json"}
        data = json.dumps(body) if body is not None else None
        async with self._session.request(method, self._url + target, data=data, headers=headers) as answer:
            said = await answer.json()
        assert answer.status in (200, 201), said
        return said

    async def watch(self, target: str) -> AsyncIterator[Any]:
        """Events, until the server dies."""
        with self.until_it_dies():
            async with self._session.get(self._url + target) as answer:
                async for line in answer.content:
                    if line.endswith(b"\n"):
                        yield json.loads(line)
            assert not self.alive, "the watch ended by itself"

    @contextmanager
    def until_it_dies(self) -> Iterator[None]:
        try:
            yield
        except aiohttp.ClientError:
            assert not self.alive, "a connection broke by itself"

    async def config_maps(self) -> tuple[dict[str, State], int]:
        listed = await self.request("GET", CONFIG_MAPS)
        found = {item["metadata"]["name"]: state_of(item) for item in listed["items"]}
        return found, int(listed["metadata"]["resourceVersion"])

    async def _hear(self, word: str) -> int:
        """What a life that was killed early had still to say is passed over."""
        while line := (await self._said.readline()).decode().split():
            if line[0] == word:
                return int(line[1])
        raise AssertionError("the API server ended by itself")


class Writer:
    """Creates, updates, patches and deletes the config maps that are its own."""

    def __init__(self, server: Server, ledger: Ledger, number: int, choices: random.Random) -> None:
        self._server = server
        self._ledger = ledger
        self._names = [f"config-{number}-{n}" for n in range(NAMES)]
        self._written = 0
        self._choices = choices

    async def write(self) -> None:
        """Until the server dies."""
        with self._server.until_it_dies():
            while self._server.alive:
                await self._write_one(self._choices.choice(self._names))

    async def _write_one(self, name: str) -> None:
        standing = self._ledger.standing(name)
        self._written += 1
        value = f"{name}-{self._written}"
        write = self._create if standing.value is None else self._choices.choice(self._ways)
        self._server.seen("request")
        self._ledger.in_doubt[name] = None if write == self._delete else value
        answer = await write(name, value, standing.revision)
        self._ledger.settle(name, State() if write == self._delete else state_of(answer))
        self._server.seen("answer")

    @property
    def _ways(self) -> list[Any]:
        return [self._update, self._merge, self._json_patch, self._apply, self._delete]

    async def _create(self, name: str, value: str, revision: int | None) -> Any:
        return await self._server.request("POST", CONFIG_MAPS, manifest(name, value))

    async def _update(self, name: str, value: str, revision: int | None) -> Any:
        wanted = manifest(name, value)
        wanted["metadata"]["resourceVersion"] = str(revision)
        return await self._server.request("PUT", f"{CONFIG_MAPS}/{name}", wanted)

    async def _merge(self, name: str, value: str, revision: int | None) -> Any:
        kind = self._choices.choice(MERGE_PATCHES)
        return await self._server.request("PATCH", f"{CONFIG_MAPS}/{name}", manifest(name, value), kind)

    async def _json_patch(self, name: str, value: str, revision: int | None) -> Any:
        wanted = manifest(name, value)
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": str(revision)},
            {"op": "replace", "path": "/metadata/labels/value", "value": value},
            {"op": "replace", "path": "/data", "value": wanted["data"]},
        ]
        return await self._server.request("PATCH", f"{CONFIG_MAPS}/{name}", patch, JSON_PATCH)

    async def _apply(self, name: str, value: str, revision: int | None) -> Any:
        target = f"{CONFIG_MAPS}/{name}?fieldManager=writer&force=true"
        return await self._server.request("PATCH", target, manifest(name, value), APPLY_PATCH)

    async def _delete(self, name: str, value: str, revision: int | None) -> Any:
        return await self._server.request("DELETE", f"{CONFIG_MAPS}/{name}")


class Watcher:
    """Resumes in every life where it was when the last one ended."""

    def __init__(self, server: Server, ledger: Ledger, revision: int) -> None:
        self._server = server
        self._ledger = ledger
        self._revision = revision
        self.history: dict[str, list[State]] = {}

    async def follow(self) -> None:
        """Until the server dies, or the last object of all is seen."""
        async for event in self._server.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={self._revision}"):
            self._take(event["type"], event["object"])
            if LAST in self.history:
                return
            self._server.seen("event")

    def _take(self, type: str, obj: dict[str, Any]) -> None:
        assert type != "ERROR", obj
        revision, name = int(obj["metadata"]["resourceVersion"]), obj["metadata"]["name"]
        assert revision > self._revision, "an event came twice, or out of order"
        self._revision = revision
        self._ledger.hear(revision)
        states = self.history.setdefault(name, [])
        expected = ("MODIFIED", "DELETED") if states and states[-1].value else ("ADDED",)
        assert type in expected, name
        states.append(State() if type == "DELETED" else state_of(obj))


@asynccontextmanager
async def api_server(data: Path) -> AsyncIterator[Server]:
    program = await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, data, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert program.stdout
    try:
        async with aiohttp.ClientSession() as session:
            yield Server(session, program.stdout)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        await program.communicate()


async def live(server: Server, writers: list[Writer], watchers: list[Watcher]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for watcher in watchers:
            tasks.create_task(watcher.follow())
        for writer in writers:
            tasks.create_task(writer.write())


async def test_nothing_acknowledged_is_lost_and_nothing_is_seen_twice(seed: int, tmp_path: Path) -> None:
    choices = random.Random(seed)
    ledger = Ledger()
    async with asyncio.timeout(LONGEST_RUN), api_server(tmp_path / "podling.db") as server:
        await server.start()
        await server.serve()
        await server.request("POST", NAMESPACES, {"metadata": {"name": "default"}})
        _, revision = await server.config_maps()
        watchers = [Watcher(server, ledger, revision) for _ in range(WATCHERS)]
        writers = [Writer(server, ledger, number, choices) for number in range(WRITERS)]
        for life in range(LIVES):
            moment = choices.choice(MOMENTS)
            count = choices.randint(1, LONGEST_LIFE)
            server.die_at(moment, count * WATCHERS if moment == "event" else count)
            await live(server, writers, watchers)
            await server.start()
            if life % 20 == 0:
                # Killed before it served at all.
                server.kill()
                await server.start()
            await server.serve()
            ledger.check(*await server.config_maps())
        ledger.settle(LAST, state_of(await server.request("POST", CONFIG_MAPS, manifest(LAST, "end"))))
        await live(server, [], watchers)
    assert all(watcher.history == ledger.history for watcher in watchers)
    assert sum(map(len, ledger.history.values())) > LIVES * 10
