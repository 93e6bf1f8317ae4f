"""What clients do on a cluster that fails, and the history of what each saw, for `history.py` to judge.

A run has its own namespace and election. Its faults follow from its number; what the clients do between them
does not, since it depends on who answers when.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from peer.faulty import PATIENCE, SETTLED, Cluster, hurt
from peer.history import History, Led, Logged, Read, Watched, Wrote
from podling.client.client import Client
from podling.client.https import HttpsTransport
from podling.client.leader import Election, LostError, Timing
from podling.model.errors import StatusError
from podling.model.time import SystemClock
from podling.process.waits import woken
from podling.storage.etcd.connection import Connection, EtcdError
from podling.storage.etcd.store import changes_after

KEYS = [f"k{n}" for n in range(5)]
WRITERS, READERS, WATCHERS, CANDIDATES = 3, 2, 2, 2
HEALED = 0.3
"""Seconds between two faults."""
FAULTS_A_RUN = 2
TIMING = Timing(lasts=3.0, renew_within=1.5, retry=0.3)


class Run:
    """The clients of one run. They go on until `healed` is set, watches until they have brought `last`."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster = cluster
        self._chance = random.Random(number)
        self.namespace = f"run-{number}"
        self._lease = f"leader-{number}"
        self._path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        self._healed, self._ended = asyncio.Event(), asyncio.Event()
        self._last = 0
        self._values = 0
        self.faults: list[str] = []
        self.writes: list[Wrote] = []
        self.reads: list[Read] = []
        self.watches: list[Watched] = []
        self.leaders: list[Led] = []

    async def play(self) -> History:
        """The whole story. Raises TimeoutError if somebody does not recover."""
        first = await self._made("namespaces", {"metadata": {"name": self.namespace}})
        async with asyncio.TaskGroup() as tasks:
            clients = [
                tasks.create_task(client)
                for client in (
                    *(self._go_on(self._write) for _ in range(WRITERS)),
                    *(self._go_on(self._read) for _ in range(READERS)),
                    *(self._watch() for _ in range(WATCHERS)),
                )
            ]
            candidates = [tasks.create_task(self._lead(n)) for n in range(CANDIDATES)]
            for _ in range(FAULTS_A_RUN):
                await asyncio.sleep(HEALED)
                self.faults.append(await hurt(self._cluster, self._chance))
            await self._cluster.settled()
            self._healed.set()
            for candidate in candidates:
                candidate.cancel()
            self._last = await self._made(
                f"namespaces/{self.namespace}/configmaps", self._body("last", "last")
            )
            self.writes.append(Wrote(*(2 * (self._now(),)), "made", "last", "last", self._last))
            self._ended.set()
            async with asyncio.timeout(SETTLED):
                await asyncio.gather(*clients)
        return History(await self._log(first), self.writes, self.reads, self.watches, self.leaders)

    async def _made(self, path: str, body: Mapping[str, Any]) -> int:
        """The revision of an object that is made while nothing fails."""
        transport = self._cluster.servers[0].transport()
        code, _, said = await transport.request("POST", f"/api/v1/{path}", {}, json.dumps(body).encode())
        await transport.close()
        assert code == 201, said
        return int(json.loads(said)["metadata"]["resourceVersion"])

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _body(self, key: str, value: str) -> dict[str, Any]:
        return {"metadata": {"name": key}, "data": {"v": value}}

    async def _go_on(self, act: Callable[[HttpsTransport], Awaitable[bool]]) -> None:
        """Act again and again, at the other server after one has failed."""
        at = self._chance.randrange(2)
        while not self._healed.is_set():
            transport = self._cluster.servers[at].transport()
            try:
                while not self._healed.is_set() and await act(transport):
                    await woken(self._healed, 0.02)
            finally:
                await transport.close()
            at = 1 - at
            await woken(self._healed, 0.1)

    async def _ask(
        self, transport: HttpsTransport, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, Any]:
        """Code and answer; code 0 if nobody knows."""
        data = json.dumps(body).encode() if body is not None else None
        try:
            async with asyncio.timeout(PATIENCE):
                code, _, said = await transport.request(method, path, {}, data)
                return code, json.loads(said) if said else {}
        except (OSError, TimeoutError, ValueError):
            return 0, {}

    async def _write(self, transport: HttpsTransport) -> bool:
        key, method = random.choice(KEYS), random.choices(["PUT", "POST", "DELETE"], [6, 3, 1])[0]
        self._values += 1
        value = None if method == "DELETE" else f"v{self._values}"
        path = self._path if method == "POST" else f"{self._path}/{key}"
        begin = self._now()
        body = self._body(key, value) if value else None
        code, said = await self._ask(transport, method, path, body)
        outcome = "made" if code in (200, 201) else "refused" if code in (404, 409) else "unknown"
        revision = int(said["metadata"]["resourceVersion"]) if outcome == "made" and value else 0
        self.writes.append(Wrote(begin, self._now(), outcome, key, value, revision))  # type: ignore[arg-type]
        return outcome != "unknown"

    async def _read(self, transport: HttpsTransport) -> bool:
        key = random.choice([*KEYS, ""])
        begin = self._now()
        code, said = await self._ask(transport, "GET", f"{self._path}/{key}" if key else self._path)
        if code == 200:
            items = [said] if key else said["items"]
            found = {one["metadata"]["name"]: _seen(one) for one in items}
            at = 0 if key else int(said["metadata"]["resourceVersion"])
            self.reads.append(Read(begin, self._now(), [key] if key else None, found, at))
        elif code == 404:
            self.reads.append(Read(begin, self._now(), [key], {}))
        return code in (200, 404)

    async def _watch(self) -> None:
        at, after = self._chance.randrange(2), 0
        told: list[Logged] = []
        began = 0
        while not (self._ended.is_set() and after >= self._last):
            transport = self._cluster.servers[at].transport()
            try:
                if not after:
                    code, said = await self._ask(transport, "GET", self._path)
                    if code != 200:
                        raise OSError("no list")
                    began = after = int(said["metadata"]["resourceVersion"])
                query = {"watch": "1", "resourceVersion": str(after), "allowWatchBookmarks": "true"}
                # One that hangs is asked for anew, as client-go does after some minutes.
                query["timeoutSeconds"] = "2"
                async with (
                    asyncio.timeout(2 + PATIENCE),
                    aclosing(_lines(transport, self._path, query)) as lines,
                ):
                    async for line in lines:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            raise StatusError(event["object"]["code"], event["object"]["reason"], "")
                        entry = _told(event)
                        if event["type"] != "BOOKMARK":
                            told.append(entry)
                        after = entry.revision
                        if self._ended.is_set() and after >= self._last:
                            break
            except StatusError as error:
                if error.code == 410:
                    self.watches.append(Watched(began, told, after))
                    told, after = [], 0
            except (OSError, TimeoutError):
                pass
            finally:
                await transport.close()
            at = 1 - at
            await woken(self._ended, 0.05)
        self.watches.append(Watched(began, told, after))

    async def _lead(self, number: int) -> None:
        me = f"candidate-{number}"
        task = asyncio.current_task()
        # To be cancelled just when the Lease is lost raises the loss alone.
        while task and not task.cancelling():
            transport = self._cluster.servers[number].transport()
            client = Client(transport)

            async def act() -> None:
                begun = self._now()
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    self.leaders.append(Led(begun, self._now(), me))

            try:
                await Election(client, self._lease, SystemClock(), Unsaid(), TIMING).run(act)  # type: ignore[arg-type]
            except* (LostError, OSError, StatusError):
                pass
            finally:
                await transport.close()

    async def _log(self, first: int) -> list[Logged]:
        """What etcd says itself."""
        prefix = f"/registry/configmaps/{self.namespace}/"
        connection = Connection(self._cluster.members.urls)
        log: list[Logged] = []
        try:
            async with asyncio.timeout(SETTLED), aclosing(changes_after(connection, first)) as answers:
                async for revision, events in answers:
                    for event in events:
                        key = event.kv.key.decode()
                        if key.startswith(prefix):
                            value = json.loads(event.kv.value)["data"]["v"] if event.kv.value else None
                            log.append(Logged(event.kv.mod_revision, key.removeprefix(prefix), value))
                    if revision >= self._last:
                        return log
        finally:
            await connection.close()
        raise EtcdError("the log ended early", failed=True)


class Unsaid:
    """No events: they are of no history."""

    def normal(self, *_: Any, **__: Any) -> None: ...

    warning = normal


def _seen(item: Mapping[str, Any]) -> tuple[str, int]:
    return item["data"]["v"], int(item["metadata"]["resourceVersion"])


def _told(event: Mapping[str, Any]) -> Logged:
    """What an event says; of a bookmark how far it has come."""
    obj = event["object"]
    revision = int(obj["metadata"]["resourceVersion"])
    value = obj["data"]["v"] if event["type"] in ("ADDED", "MODIFIED") else None
    return Logged(revision, obj["metadata"].get("name", ""), value)


async def _lines(transport: HttpsTransport, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes]:
    left = b""
    async with aclosing(transport.stream(path, query)) as pieces:
        async for piece in pieces:
            *lines, left = (left + piece).split(b"\n")
            for line in lines:
                yield line
