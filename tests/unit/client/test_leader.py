"""One of all who ask for a Lease leads: it renews it, loses it when it cannot, and leaves it when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.leader import NAMESPACE, TIMING, Election, LostError, Seen, held_by, is_free
from podling.client.transport import JSON, Answer
from podling.model.time import SystemClock
from podling.model.types.coordination import Lease, LeaseSpec
from podling.model.types.core import Namespace
from podling.model.types.meta import ObjectMeta
from podling.model.types.rbac import MASTERS
from podling.storage.memory import MemoryStorage

InNoTime = Callable[[Coroutine[Any, Any, None]], None]
NAME = "kube-scheduler"


@pytest.mark.parametrize(
    ("spec", "since", "free"),
    [
        (LeaseSpec(), 0.0, True),
        (LeaseSpec(holder_identity="", lease_duration_seconds=15), 100.0, True),
        (LeaseSpec(holder_identity="me", lease_duration_seconds=15), 100.0, True),
        (LeaseSpec(holder_identity="other", lease_duration_seconds=15), 85.0, True),
        (LeaseSpec(holder_identity="other", lease_duration_seconds=15), 86.0, False),
        (LeaseSpec(holder_identity="other"), 100.0, True),
    ],
)
def test_a_lease_is_free_when_nobody_renews_it(spec: LeaseSpec, since: float, free: bool) -> None:
    assert is_free(Seen(spec, since), "me", 100.0) is free


def test_who_takes_a_lease_counts_and_who_renews_it_does_not() -> None:
    first = held_by("a", LeaseSpec(holder_identity="b", lease_transitions=2), "t1", 15.0)
    assert (first.holder_identity, first.acquire_time, first.lease_transitions) == ("a", "t1", 3)
    again = held_by("a", first, "t2", 15.0)
    assert (again.acquire_time, again.renew_time, again.lease_transitions) == ("t1", "t2", 3)


class Reached:
    """A way to a server that can be cut."""

    def __init__(self, transport: LocalTransport) -> None:
        self._transport = transport
        self.is_cut = False
        self.late = 0.0
        """Seconds by which answers come late."""

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        if self.is_cut:
            raise OSError("cut")
        answer = await self._transport.request(method, path, query, body, content_type)
        await asyncio.sleep(self.late)
        return answer


class Candidate:
    def __init__(self, server: ApiServer) -> None:
        self.way = Reached(LocalTransport(server.handle, User("a", (MASTERS,))))
        client = Client(self.way)  # type: ignore[arg-type]
        clock = SystemClock()
        self.election = Election(client, NAME, clock, EventRecorder(client, clock, NAME))
        self.leads_since: float | None = None

    async def run(self) -> None:
        await self.election.run(self._act)

    async def _act(self) -> None:
        self.leads_since = asyncio.get_running_loop().time()
        try:
            await asyncio.Event().wait()
        finally:
            self.leads_since = None


async def nowhere(*_: Any) -> Any:
    raise AssertionError("there are no nodes")


@asynccontextmanager
async def serving() -> AsyncIterator[ApiServer]:
    server = ApiServer.build(MemoryStorage(), KINDS, clock=SystemClock(), connector=nowhere)
    await server.start()
    await admin(server).create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    yield server
    server.close()


def admin(server: ApiServer) -> Client:
    return Client(LocalTransport(server.handle, User("root", (MASTERS,))))


async def spec(server: ApiServer) -> LeaseSpec:
    return (await admin(server).get(Lease, NAME, NAMESPACE)).spec


def test_the_next_leads_at_once_when_one_ends(in_no_time: InNoTime) -> None:
    async def story() -> None:
        async with serving() as server, asyncio.TaskGroup() as tasks:
            first, second = Candidate(server), Candidate(server)
            running = tasks.create_task(first.run())
            await asyncio.sleep(1)
            waiting = tasks.create_task(second.run())
            await asyncio.sleep(60)
            assert first.leads_since is not None and second.leads_since is None
            said = await spec(server)
            assert (said.holder_identity, said.lease_duration_seconds) == (first.election.me, 15)
            assert said.lease_transitions == 0
            running.cancel()
            await asyncio.sleep(TIMING.retry + 0.1)
            assert second.leads_since is not None
            said = await spec(server)
            assert (said.holder_identity, said.lease_transitions) == (second.election.me, 1)
            waiting.cancel()

    in_no_time(story())


def test_who_cannot_renew_ends_before_another_leads(in_no_time: InNoTime) -> None:
    async def story() -> None:
        async with serving() as server, asyncio.TaskGroup() as tasks:
            first, second = Candidate(server), Candidate(server)

            async def lost() -> None:
                with pytest.raises(ExceptionGroup) as ended:
                    await first.run()
                assert ended.group_contains(LostError, match="could not be renewed within 10 s")

            tasks.create_task(lost())
            await asyncio.sleep(1)
            waiting = tasks.create_task(second.run())
            await asyncio.sleep(20)
            cut = asyncio.get_running_loop().time()
            first.way.is_cut = True
            while second.leads_since is None:
                assert asyncio.get_running_loop().time() - cut < 20
                await asyncio.sleep(0.1)
                assert first.leads_since is None or second.leads_since is None
            # At most what a Lease lasts, and the time between two looks.
            assert second.leads_since - cut <= 17
            waiting.cancel()

    in_no_time(story())


def test_who_hears_late_that_it_leads_ends_before_another_leads(in_no_time: InNoTime) -> None:
    async def story() -> None:
        async with serving() as server:
            first, second = Candidate(server), Candidate(server)
            loop = asyncio.get_running_loop()

            async def lose() -> float:
                with pytest.raises(ExceptionGroup):
                    await first.run()
                return loop.time()

            async with asyncio.TaskGroup() as tasks:
                losing = tasks.create_task(lose())
                await asyncio.sleep(1)
                # Others see the renewal when it is made; its holder 9 s later. The next is never made.
                first.way.late = TIMING.renew_within - 1
                waiting = tasks.create_task(second.run())
                await asyncio.sleep(TIMING.renew_within)
                first.way.is_cut = True
                await asyncio.sleep(TIMING.lasts + TIMING.retry)
                assert second.leads_since is not None
                assert losing.done() and losing.result() < second.leads_since
                waiting.cancel()

    in_no_time(story())


def test_who_finds_that_another_has_it_ends_at_once(in_no_time: InNoTime) -> None:
    async def story() -> None:
        async with serving() as server:
            first = Candidate(server)
            with pytest.raises(ExceptionGroup) as ended:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(first.run())
                    await asyncio.sleep(5)
                    lease = await admin(server).get(Lease, NAME, NAMESPACE)
                    lease.spec.holder_identity = "other"
                    await admin(server).update(lease)
            assert ended.group_contains(LostError, match=f"other has the lease {NAME}")
            assert (await spec(server)).holder_identity == "other"

    in_no_time(story())
