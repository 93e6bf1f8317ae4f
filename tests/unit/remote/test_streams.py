"""R-CLI: what a command says is shown whole and where it belongs, in whatever order its streams come."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from podling.client.https import HttpsTransport
from podling.debug.container import Wish
from podling.debug.places import Looked
from podling.model.codec import json
from podling.model.types.pod import Pod
from podling.process.http_client import Headers
from podling.remote import capturing, session, terminal
from podling.remote.attaching import attach
from podling.remote.capturing import Capture, capture
from podling.remote.copying import Files, _Tally
from podling.remote.pods import Cluster
from podling.remote.recording import Unrecorded
from podling.remote.streams import Command, Wanted
from podling.remote.terminal import Narrator
from podling.remote.unpack import part_of
from podling.streaming.session import Session, Stream
from podling.streaming.spdy.connection import SpdyWire

PCAP = bytes.fromhex("d4c3b2a1 02000400 00000000 00000000 00000400 01000000") + b"packet"
SUCCESS = b'{"status":"Success"}'
FAILURE = b'{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"1"}]}}'


class Far:
    """A node, at the other end of one command's connection."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.streams: dict[str, Stream] = {}

    async def accept(self, count: int) -> None:
        while len(self.streams) < count:
            stream = await self._session.accept()
            assert stream is not None
            self.streams[stream.headers["streamtype"]] = stream

    async def say(self, name: str, said: bytes) -> None:
        """All that comes by this stream."""
        await self.streams[name].write(said)
        self.streams[name].end()


async def meanwhile() -> None:
    """All that can happen without more from anybody happens."""
    for _ in range(100):
        await asyncio.sleep(0)


def pod(**status: Any) -> Pod:
    container = {"name": "app", "image": "i", "stdin": True}
    at = {"containerStatuses": [{"name": "app", "state": status}]}
    metadata = {"name": "web", "namespace": "ns", "uid": "u"}
    return json.from_data({"metadata": metadata, "spec": {"containers": [container]}, "status": at}, Pod)


class Somewhere(Cluster):
    """One pod, whose container prints `logged` before anybody attaches. `asked`: its log was asked for;
    `answers`: it is answered."""

    logged, whole = b"before\n", b""

    def __init__(self) -> None:
        super().__init__(cast(HttpsTransport, None))
        self.opened: asyncio.Queue[Far] = asyncio.Queue()
        self.answers = asyncio.Event()
        self.connections: list[Session] = []

    async def get(self, namespace: str, name: str) -> Pod:
        return pod(terminated={"exitCode": 5, "reason": "Error"})

    async def exec(
        self, namespace: str, name: str, container: str, command: Sequence[str], wanted: Wanted
    ) -> Command:
        loop = asyncio.get_running_loop()
        here, there = socket.socketpair()
        _, near = await loop.create_unix_connection(lambda: Session(SpdyWire(client=True)), sock=here)
        _, far = await loop.create_unix_connection(lambda: Session(SpdyWire(client=False)), sock=there)
        self.connections += [near, far]
        self.opened.put_nowait(Far(far))
        return Command(near, Headers(), wanted)

    async def attach(
        self, namespace: str, name: str, container: str, wanted: Wanted, extra: Sequence[tuple[str, str]] = ()
    ) -> Command:
        return await self.exec(namespace, name, container, [], wanted)

    async def log(self, namespace: str, name: str, container: str, **options: str) -> bytes:
        await self.answers.wait()
        return self.logged

    async def follow(self, namespace: str, name: str, container: str) -> AsyncGenerator[bytes, None]:
        yield self.whole


@pytest.fixture
async def here() -> AsyncIterator[Somewhere]:
    made = Somewhere()
    yield made
    for one in made.connections:
        one.close()
        await one.wait_lost()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
    """By descriptor."""
    found = {session.STDOUT: b"", session.STDERR: b""}

    def write(descriptor: int, data: bytes) -> None:
        found[descriptor] += data

    monkeypatch.setattr(terminal, "write", write)
    return found


async def test_what_answers_input_is_no_part_of_the_log_and_its_end_ends_nothing(
    here: Somewhere, monkeypatch: pytest.MonkeyPatch, shown: dict[int, bytes]
) -> None:
    """Of a log nobody can tell what was said on standard error, and containerd shows those no more whose
    input has ended."""
    reading, writing = os.pipe()
    monkeypatch.setattr(session, "STDIN", reading)
    os.write(writing, b"typed")
    os.close(writing)
    here.whole = b"before\none\ntwo\n"
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        attached = tasks.create_task(
            attach(here, pod(running={}), "app", Wish("i", stdin=True), Unrecorded())
        )
        far = await here.opened.get()
        await far.accept(4)
        heard = tasks.create_task(far.streams["stdin"].read())
        await meanwhile()
        assert not heard.done()
        here.answers.set()
        assert await heard == b"typed"
        ended = tasks.create_task(far.streams["stdin"].read())
        await far.say("stdout", b"one\n")
        await meanwhile()
        assert not ended.done()
        await far.say("stderr", b"two\n")
        await far.say("error", SUCCESS)
        assert await attached == 5
        ended.cancel()
    os.close(reading)
    assert shown == {session.STDOUT: b"before\none\n", session.STDERR: b"two\n"}


async def test_what_a_capture_says_last_is_shown(
    here: Somewhere, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def helper(*_: object, **__: object) -> AsyncIterator[str]:
        yield "tools"

    monkeypatch.setattr(capturing, "helper", helper)
    taken = bytearray()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(
            capture(here, Capture("ns", "web", "i", "auto"), taken.extend, Narrator())
        )
        far = await here.opened.get()
        await far.accept(3)
        await far.say("stdout", PCAP)
        await far.say("error", SUCCESS)
        await meanwhile()
        await far.say("stderr", b"1 packet captured\n")
        assert await running == 0
    assert (bytes(taken), capsys.readouterr().err) == (PCAP, "1 packet captured\n")


async def test_why_a_copy_failed_is_told(here: Somewhere, tmp_path: Path) -> None:
    into = tmp_path / "file"
    part_of(into).touch()
    with (tmp_path / "digests").open("wb") as digests:
        tally = _Tally(Narrator(quiet=True), digests)
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            files = Files(here, pod(running={}), "app", "", (0, 0))
            running = tasks.create_task(files.fetch_rest(Looked("file", 1, "/file"), into, tally))
            far = await here.opened.get()
            await far.accept(3)
            await far.say("stdout", b"")
            await far.say("error", FAILURE)
            await meanwhile()
            await far.say("stderr", b"tail: read error\n")
            await running
    assert tally.errors == ["tail: read error"]
