"""What only etcd brings: other writers, members that fail, links that break, a past that others forget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import podling.storage.etcd.etcd_pb2 as pb
from peer.control_plane import HOST, etcd_server
from peer.link import Link
from podling.apiserver.assemble import ApiServer
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.response import Response
from podling.model.time import SystemClock
from podling.storage import etcd
from podling.storage.etcd import EtcdStorage, store
from podling.storage.etcd.connection import Connection, EtcdError, target
from podling.storage.interface import (
    ConflictError,
    Event,
    Record,
    StorageClosedError,
    UnknownOutcomeError,
    Write,
)
from ports import free_port

LONG = 1500
POD = "/registry/pods/default/neato"


async def no_node(context: object, obj: object) -> Response:
    raise NotImplementedError


@pytest.fixture
async def server(kubernetes_programs: Path, tmp_path: Path) -> AsyncIterator[str]:
    with etcd_server(kubernetes_programs / "etcd", tmp_path, durable=False) as url:
        yield url


@pytest.fixture
async def link(server: str) -> AsyncIterator[Link]:
    port = urlsplit(server).port
    assert port
    async with Link(port).open() as opened:
        yield opened


@pytest.fixture
async def near(server: str) -> AsyncIterator[EtcdStorage]:
    opened = await etcd.open(Connection([server]))
    yield opened
    await opened.close()


@pytest.fixture
async def far(link: Link, near: EtcdStorage) -> AsyncIterator[EtcdStorage]:
    """Behind the link."""
    opened = await etcd.open(Connection([link.url]))
    yield opened
    link.mend()
    await opened.close()


def heard(storage: EtcdStorage) -> list[Event]:
    events: list[Event] = []
    storage.watch("", lambda _, told: events.extend(told))
    return events


async def test_what_others_write_is_heard_and_stands_against_own_writes(
    near: EtcdStorage, far: EtcdStorage
) -> None:
    told = heard(far)
    first = await near.create(POD, b"v1")
    second = await near.update(POD, b"v2", first)
    with pytest.raises(ConflictError) as conflict:
        await far.update(POD, b"mine", first)
    assert conflict.value.record == Record(POD, b"v2", second) == await far.get(POD)
    assert told == [
        Event(first, POD, b"v1", None),
        Event(second, POD, b"v2", Record(POD, b"v1", first)),
    ]


async def test_who_asks_for_what_is_current_has_what_others_were_told_of(
    near: EtcdStorage, far: EtcdStorage
) -> None:
    for number in range(50):
        revision = await near.create(f"{POD}-{number}", b"v1")
        assert await far.current() >= revision
        assert await far.get(f"{POD}-{number}") == Record(f"{POD}-{number}", b"v1", revision)


async def test_those_of_one_turn_ask_together_and_no_later_one_with_them(
    near: EtcdStorage, far: EtcdStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Connection.ask

    async def counted(connection: Connection, path: str, *how: Any) -> Any:
        asked.append(path)
        answer = await ask(connection, path, *how)
        if len(asked) == 1:
            # It is answered, and not yet heard of, when the next asks.
            revisions.append(await near.create(POD, b"v1"))
            later.append(tasks.create_task(far.current()))
        return answer

    revisions: list[int] = []
    later: list[asyncio.Task[int]] = []
    async with asyncio.TaskGroup() as tasks:
        with monkeypatch.context() as patched:
            patched.setattr(far._connection, "ask", partial(counted, far._connection))
            await asyncio.gather(*(far.current() for _ in range(100)))
            assert await later[0] >= revisions[0]
    assert asked == ["/etcdserverpb.KV/Range"] * 2


async def test_what_is_current_is_not_known_while_nobody_answers(
    far: EtcdStorage, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podling.storage.etcd.store.LONGEST", 0.1)
    link.cut()
    with pytest.raises(StorageClosedError):
        await far.current()
    link.mend()
    assert await far.current() >= far.revision


async def test_a_watch_that_was_cut_goes_on_without_a_gap(
    near: EtcdStorage, far: EtcdStorage, link: Link
) -> None:
    told = heard(far)
    first = await near.create(POD, b"v1")
    await far.reached(first)
    link.cut()
    second = await near.update(POD, b"v2", first)
    last = await near.delete(POD, second)
    link.mend()
    await far.reached(last)
    assert told == [
        Event(first, POD, b"v1", None),
        Event(second, POD, b"v2", Record(POD, b"v1", first)),
        Event(last, POD, None, Record(POD, b"v2", second)),
    ]


async def test_a_watch_that_has_stopped_for_good_is_told(near: EtcdStorage, server: str) -> None:
    """By a fault of podling's own: readers would wait for ever, and nobody would know why."""

    def read(key: str, value: bytes) -> bytes:
        raise RuntimeError(f"{key} is beyond this test")

    other = await etcd.open(Connection([server]), read)
    await near.create(POD, b"v1")
    async with asyncio.timeout(30):
        while not (why := await fault_of(other)):
            pass
    assert why == f"etcd is not followed any more: RuntimeError('{POD} is beyond this test')"
    await other.close()


async def fault_of(storage: EtcdStorage) -> str:
    try:
        await storage.probe()
    except StorageClosedError as error:
        return str(error)
    return ""


async def test_what_was_forgotten_meanwhile_is_told_as_a_difference(
    near: EtcdStorage, far: EtcdStorage, link: Link
) -> None:
    told = heard(far)
    kept = await near.create("/registry/pods/default/kept", b"k")
    gone = await near.create("/registry/pods/default/gone", b"g")
    first = await near.create(POD, b"v1")
    await far.reached(first)
    before = len(told)
    link.cut()
    await near.delete("/registry/pods/default/gone", gone)
    await near.delete(POD, first)
    again = await near.create(POD, b"another")
    await near.compact(near.revision)
    link.mend()
    await far.reached(near.revision)
    changed = told[before:]
    assert [(event.key, event.value, event.previous) for event in changed] == [
        (POD, None, Record(POD, b"v1", first)),
        (POD, b"another", None),
        ("/registry/pods/default/gone", None, Record("/registry/pods/default/gone", b"g", gone)),
    ]
    assert changed[1].revision == again
    assert (await far.list("")).records == (await near.list("")).records
    assert kept in {record.revision for record in (await far.list("")).records}


@pytest.mark.parametrize("verb", ["create", "update", "delete"])
async def test_a_write_whose_answer_is_lost_is_made_once(
    near: EtcdStorage, far: EtcdStorage, link: Link, verb: str
) -> None:
    at = 0 if verb == "create" else await near.create(POD, b"v1")
    await far.reached(at)
    done = asyncio.Event()
    end = near.watch("", lambda *_: done.set())
    link.deaf = True
    write = Write(POD, None if verb == "delete" else b"v2", at or None)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(far.commit([write]))
        await done.wait()
        end()
        made = near.revision
        link.cut()
        link.mend()
    assert near.revision == made
    assert writing.result() == made
    assert await near.get(POD) == (None if verb == "delete" else Record(POD, b"v2", made))


@pytest.mark.parametrize("verb", ["create", "update", "delete"])
async def test_a_write_whose_answer_is_lost_and_that_was_overwritten_is_not_made_again(
    near: EtcdStorage, far: EtcdStorage, link: Link, verb: str
) -> None:
    """Who decides anew after a conflict would write it over what came since."""
    at = 0 if verb == "create" else await near.create(POD, b"v1")
    await far.reached(at)
    done = asyncio.Event()
    end = near.watch("", lambda *_: done.set())
    link.deaf = True
    write = Write(POD, None if verb == "delete" else b"v2", at or None)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(far.commit([write]))
        await done.wait()
        end()
        made = near.revision
        await near.commit([Write(POD, b"over it", None if verb == "delete" else made)])
        link.cut()
        link.mend()
    assert writing.result() == made
    assert (await far.get(POD) or Record("", b"", 0)).value == b"over it"


async def test_what_was_made_and_deleted_is_not_made_again(
    near: EtcdStorage, far: EtcdStorage, link: Link
) -> None:
    """The same transaction would be made: the key is free once more."""
    done = asyncio.Event()
    end = near.watch("", lambda *_: done.set())
    link.deaf = True
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(far.create(POD, b"v1"))
        await done.wait()
        end()
        made = near.revision
        gone = await near.delete(POD, made)
        link.cut()
        link.mend()
    assert writing.result() == made
    assert (near.revision, await far.get(POD)) == (gone, None)


async def test_a_key_is_made_at_another_member_if_the_first_is_not_there(server: str) -> None:
    opened = await etcd.open(Connection([server, f"http://{HOST}:{free_port()}"]))
    opened._connection._at = 1
    await opened.create(POD, b"v1")
    await opened.close()


async def test_a_long_past_comes_in_parts_and_is_all_there(near: EtcdStorage, server: str) -> None:
    """etcd sends a thousand revisions at a time to who catches up, and says each time how far it has come."""
    last = await near.create(POD, b"v0")
    for number in range(LONG):
        last = await near.update(POD, str(number).encode(), last)
    later = await etcd.open(Connection([server]))
    assert len(await later.history("", 0)) == LONG + 1
    await later.close()


async def test_when_nobody_answers_the_outcome_is_unknown(
    near: EtcdStorage, far: EtcdStorage, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LONGEST", 0.2)
    link.cut()
    with pytest.raises(UnknownOutcomeError):
        await far.create(POD, b"v1")
    with pytest.raises(StorageClosedError):
        await far.probe()
    link.mend()
    await far.reached(await near.create("/registry/pods/default/other", b""))
    await far.probe()
    await far.create(POD, b"v1")


async def test_another_member_is_asked_when_one_fails(server: str) -> None:
    nobody = f"http://{HOST}:{free_port()}"
    opened = await etcd.open(Connection([nobody, server]))
    await opened.create(POD, b"v1")
    await opened.close()


async def test_a_server_that_starts_later_finds_all_of_it(near: EtcdStorage, server: str) -> None:
    for n in range(store.PAGE + 1):
        last = await near.create(f"{POD}-{n}", str(n).encode())
    later = await etcd.open(Connection([server]))
    assert await later.list("") == await near.list("")
    assert list(await later.history("", last - 1)) == [Event(last, f"{POD}-{n}", str(n).encode(), None)]
    await near.compact(last)
    await later.reached(near.revision)
    assert later.compacted == last
    await later.close()
    latest = await etcd.open(Connection([server]))
    assert latest.compacted == last
    await latest.close()


async def test_a_new_etcd_has_no_history(near: EtcdStorage) -> None:
    assert list(await near.history("", 0)) == []


async def test_no_etcd_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LONGEST", 0.1)
    url = f"http://{HOST}:{free_port()}"
    connection = Connection([url])
    with pytest.raises(EtcdError, match=url):
        await etcd.open(connection)
    await connection.close()


@pytest.mark.parametrize(
    ("url", "leads"),
    [
        ("http://127.0.0.1:2379", ("127.0.0.1:2379", False)),
        ("https://etcd.test", ("etcd.test:2379", True)),
        ("https://[::1]:1", ("[::1]:1", True)),
    ],
)
def test_where_a_url_leads(url: str, leads: tuple[str, bool]) -> None:
    assert target(url) == leads


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:2379", "ftp://a", "http://", "http://a/b", "http://u@a", "http://a:x"]
)
def test_what_is_no_url_is_said(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|Port"):
        target(url)


async def until_gone(storage: EtcdStorage, key: str) -> None:
    gone = asyncio.Event()

    def hear(_: int, events: Sequence[Event]) -> None:
        if events[-1].value is None:
            gone.set()

    storage.watch(key, hear)
    if await storage.get(key) is not None:
        await gone.wait()


async def test_what_has_a_ttl_ends_by_itself_for_every_server_and_what_is_written_anew_stays(
    near: EtcdStorage, far: EtcdStorage
) -> None:
    told = heard(far)
    # etcd's shortest lease lasts two seconds.
    await near.commit([Write(POD, b"brief", None, ttl=1)])
    other = await near.commit([Write(f"{POD}-2", b"brief", None, ttl=1)])
    await near.update(f"{POD}-2", b"stays", other)
    async with asyncio.timeout(10):
        for storage in (near, far):
            # Each hears of it by itself.
            await until_gone(storage, POD)
    assert [event.key for event in told if event.value is None] == [POD]
    assert await near.get(POD) is None
    assert (await far.get(f"{POD}-2") or Record("", b"", 0)).value == b"stays"


async def test_a_lease_that_etcd_has_ended_is_taken_anew(near: EtcdStorage) -> None:
    async def ended(seconds: int) -> int:
        return 4711

    grant, near._leases._grant = near._leases._grant, ended
    assert await near._leases.lease(3600) == 4711
    near._leases._grant = grant
    await near.commit([Write(POD, b"v1", None, ttl=3600)])
    assert await near.get(POD) is not None


async def test_a_server_asks_for_the_past_once(near: EtcdStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time takes a tenth of a second, and a server has 70 caches."""
    asked: list[pb.WatchCreateRequest] = []
    watch = Connection.watch

    def counted(connection: Connection, request: pb.WatchCreateRequest) -> AsyncGenerator[pb.WatchResponse]:
        asked.append(request)
        return watch(connection, request)

    await near.delete(POD, await near.create(POD, b'{"metadata":{"name":"neato"}}'))
    monkeypatch.setattr(Connection, "watch", counted)
    server = ApiServer.build(near, KINDS, clock=SystemClock(), connector=no_node)
    await server.start()
    assert len(asked) == 1
    server.close()
    await server.ended()
