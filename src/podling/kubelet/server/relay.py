"""Joins the client's streams with the runtime's, for exec, attach and port-forward.

A client that closes its half of stdin sends end of input. A client that is lost sends nothing: the runtime's
connection is dropped, and an attached shell lives on (R-EPH-6). If the runtime is lost, the client is told of
a failure. A client that does not read holds up its container, as a full pipe does, but only until the
container's stop begins: containerd 1.6 does not stop or remove a container whose attached output is not
taken.

A connection of a port-forward is a pair of streams, data and error, that the runtime pairs by their
`requestid`; the kubelet carries each separately.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from podling.kubelet.pod.host import Signal
from podling.model.errors import internal
from podling.streaming.session import Session, Stream
from podling.streaming.wire import Disconnected

STREAMS_TIMEOUT = 30.0
"""Seconds a client has to open all its streams after the upgrade."""
SUCCESS = b'{"metadata":{},"status":"Success"}'
RUNTIME_LOST = "the container runtime ended the stream"
KUBELET_STOPS = "the kubelet is being stopped"
ANSWERS_TIMEOUT = 5.0
"""Seconds to wait for the runtime to accept the streams before its connection is dropped."""
LAST_WORDS = 5.0
"""Seconds a container has to read the remaining input of a client that is gone."""
STALLED = 10.0
"""Seconds a client may read nothing while its container is being stopped."""


async def relay_ports(client: Session, runtime: Session, *ends: Signal, streams: int | None = None) -> None:
    """Join until either side is gone or one of `ends` completes, as a runtime keeps the connection when its
    sandbox has ended. `streams` is the number of streams of a client whose protocol has no half close: then
    it also ends when the runtime has ended all of them."""

    async def drop_after(moment: Signal) -> None:
        await moment()
        runtime.drop()

    async def finish_after_runtime() -> None:
        await runtime.wait_lost()
        await client.finish()

    async def join(ours: Stream, theirs: Stream) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(ours, theirs))
            await _carry(theirs, ours)
            if streams is not None:
                ours.reset()

    async with asyncio.TaskGroup() as group:
        group.create_task(drop_after(client.wait_lost))
        group.create_task(finish_after_runtime())
        ending = [group.create_task(drop_after(moment)) for moment in ends]
        async with asyncio.TaskGroup() as joins:
            accepted = 0
            while accepted != streams and (ours := await client.accept()) is not None:
                accepted += 1
                joins.create_task(join(ours, runtime.open(runtime_headers(ours))))
        for task in ending:
            task.cancel()
        runtime.drop()
        await client.finish()


def runtime_headers(stream: Stream) -> Mapping[str, str]:
    """The stream's headers. Old clients send no requestid; their data stream follows its error stream, so the
    error stream's number serves as the id."""
    headers = dict(stream.headers)
    if "requestid" not in headers:
        first = stream.number if headers.get("streamtype") == "error" else stream.number - 2
        headers["requestid"] = str(first)
    return headers


async def _carry(source: Stream, target: Stream) -> None:
    try:
        while data := await source.read():
            await target.write(data)
    except Disconnected:
        source.reset()
        return
    if source.ended:
        target.end()
    else:
        target.reset()


class CommandStreams(msgspec.Struct, frozen=True):
    """The streams that a client asked for. With a tty, stderr is part of stdout."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    def types(self, *, resize: bool) -> tuple[str, ...]:
        """Stream types in the order Kubernetes' clients open them."""
        wanted = {
            "error": True,
            "stdin": self.stdin,
            "stdout": self.stdout,
            "stderr": self.stderr and not self.tty,
            "resize": self.tty and resize,
        }
        return tuple(name for name, asked in wanted.items() if asked)


class Dialect(msgspec.Struct, frozen=True):
    """What the client's protocol has: resizing of the terminal (since v3), a Status for the exit (v4)."""

    resize: bool
    status: bool


async def relay_command(
    client: Session,
    runtime: Session,
    wanted: CommandStreams,
    dialect: Dialect,
    kubelet_stops: Signal,
    stopping: Signal | None = None,
) -> None:
    """Join until both sides have ended. `stopping` completes when the container's stop begins; it is given
    for an attach, whose client could hold up the stop. An exec can hold up only its own command."""
    ours = await opened_in_time(client, runtime, wanted.types(resize=dialect.resize))
    if ours is None:
        return
    theirs = open_streams(runtime, wanted)

    async def leave_with_kubelet() -> None:
        await kubelet_stops()
        await leave(runtime)

    async def drop_stalled(stopping: Signal) -> None:
        await stopping()
        await client.stalled(STALLED)
        client.drop()
        await leave(runtime)

    async with asyncio.TaskGroup() as group:
        uploads = [
            group.create_task(upload(ours[name], theirs[name]))
            for name in ("stdin", "resize")
            if name in ours
        ]
        group.create_task(drop_with(client, runtime, uploads))
        leaving = group.create_task(leave_with_kubelet())
        dropping = group.create_task(drop_stalled(stopping)) if stopping else None
        told = await _download(ours, theirs) or failure(KUBELET_STOPS if leaving.done() else RUNTIME_LOST)
        leaving.cancel()
        if dropping:
            dropping.cancel()
        await tell(ours["error"], told, dialect)
        await client.finish()
        runtime.drop()


async def opened_in_time(
    client: Session, runtime: Session | None, types: tuple[str, ...]
) -> Mapping[str, Stream] | None:
    """The client's streams by type; None if it does not open all in time: then both sessions are ended."""
    try:
        async with asyncio.timeout(STREAMS_TIMEOUT):
            return await _opened_by(client, types)
    except (Disconnected, TimeoutError):
        if runtime is not None:
            runtime.drop()
        await client.finish()
        return None


async def _opened_by(client: Session, types: tuple[str, ...]) -> Mapping[str, Stream]:
    """The client's streams by type; those nobody asked for are not listened to. Raises Disconnected."""
    streams: dict[str, Stream] = {}
    while len(streams) < len(types):
        stream = await client.accept()
        if stream is None:
            raise Disconnected("the client left before it had opened its streams")
        name = stream.headers.get("streamtype", "")
        wanted = name in types and name not in streams
        if wanted:
            streams[name] = stream
        if not wanted or name not in ("stdin", "resize"):
            stream.ignore()
    return streams


def open_streams(runtime: Session, wanted: CommandStreams) -> Mapping[str, Stream]:
    """The runtime's streams by type."""
    types = wanted.types(resize=True)
    return dict(zip(types, runtime.open_all(*({"streamtype": name} for name in types)), strict=True))


async def drop_with(client: Session, runtime: Session, uploads: list[asyncio.Task[None]]) -> None:
    """When the client is lost, pass on its remaining input and drop the runtime's connection."""
    await client.wait_lost()
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORDS):
            if uploads:
                await asyncio.wait(uploads)
            await runtime.answered()
            runtime.close()
            await runtime.wait_lost()
    await leave(runtime)


async def leave(runtime: Session) -> None:
    """Drop the runtime's connection once it has accepted all streams. A containerd that cannot confirm a
    stream waits for ever to close it, and cannot stop the container."""
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWERS_TIMEOUT):
                await runtime.answered()
    finally:
        runtime.drop()


async def upload(ours: Stream, theirs: Stream, *, passes_end: bool = True) -> None:
    """Copy input to the runtime; end it there only if the client has ended it and `passes_end`."""
    try:
        while data := await ours.read():
            await theirs.write(data)
    except Disconnected:
        ours.ignore()
        return
    if ours.ended and passes_end:
        theirs.end()


async def _download(ours: Mapping[str, Stream], theirs: Mapping[str, Stream]) -> bytes:
    """Copies all output; returns what the runtime said on its error stream, empty if it was lost."""

    async def copy(name: str) -> None:
        try:
            while data := await theirs[name].read():
                await ours[name].write(data)
        except Disconnected:
            theirs[name].ignore()
        ours[name].end()

    async with asyncio.TaskGroup() as group:
        for name in ("stdout", "stderr"):
            if name in ours:
                group.create_task(copy(name))
        told = b""
        while data := await theirs["error"].read():
            told += data
    return told


async def tell(error: Stream, told: bytes, dialect: Dialect) -> None:
    """Send the outcome, a Status as JSON, on the client's error stream in its dialect, and end that."""
    message = told if dialect.status else failure_text(told)
    try:
        await error.write(message)
    except Disconnected:
        return
    error.end()


async def tell_failure(client: Session, message: str, dialect: Dialect) -> None:
    """Send a failure to a client for which there is no stream of the runtime."""
    error = (await _opened_by(client, ("error",)))["error"]
    await tell(error, failure(message), dialect)
    await client.finish()


def failure(message: str) -> bytes:
    return msgspec.json.encode(internal(message).status())


def exited(code: int) -> bytes:
    """The Status of a command that ended, as runtimes make it."""
    if not code:
        return SUCCESS
    causes = [{"reason": "ExitCode", "message": str(code)}]
    status = {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": causes},
    }
    return msgspec.json.encode(status)


def failure_text(status: bytes) -> bytes:
    """A Status for protocols before v4: nothing for success, else its message."""
    try:
        decoded = msgspec.json.decode(status, type=dict[str, object])
    except msgspec.DecodeError:
        return status
    return b"" if decoded.get("status") == "Success" else str(decoded.get("message", "")).encode()
