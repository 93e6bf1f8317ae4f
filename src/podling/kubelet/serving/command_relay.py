"""Exec and attach: the client's streams joined with the runtime's, and the exit told the way the client
understands.

Ends differ and are kept apart. A client that closes its half of stdin sends end of input. A client that is
lost sends nothing: the runtime's connection is dropped, and a shell attached to lives on (R-EPH-6). A runtime
that is lost is a failure told to the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from podling.model.errors import internal
from podling.streaming.errors import Disconnected
from podling.streaming.session import Session, Stream

STREAMS_TIMEOUT = 30.0
"""Seconds a client has to open all its streams after the upgrade."""
LAST_WORDS = 5.0
"""Seconds a container has to take the input of a client that is gone."""


@dataclass(frozen=True, slots=True)
class CommandStreams:
    """What a client asked to be joined to. With a terminal, stderr comes out of stdout."""

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


@dataclass(frozen=True, slots=True)
class Dialect:
    """How far the client's protocol goes: terminal resizing (v3), a Status for the exit (v4)."""

    resize: bool
    status: bool


async def relay_command(client: Session, runtime: Session, wanted: CommandStreams, dialect: Dialect) -> None:
    """Returns when it is over for both sides."""
    try:
        async with asyncio.timeout(STREAMS_TIMEOUT):
            ours = await _opened_by(client, wanted.types(resize=dialect.resize))
    except (Disconnected, TimeoutError):
        runtime.drop()
        await client.finish()
        return
    theirs = {name: runtime.open({"streamtype": name}) for name in wanted.types(resize=True)}
    async with asyncio.TaskGroup() as group:
        uploads = [
            group.create_task(_upload(ours[name], theirs[name]))
            for name in ("stdin", "resize")
            if name in ours
        ]
        group.create_task(_drop_with(client, runtime, uploads))
        told = await _download(ours, theirs)
        await _tell(ours["error"], told, dialect)
        await client.finish()
        runtime.drop()


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


async def _drop_with(client: Session, runtime: Session, uploads: list[asyncio.Task[None]]) -> None:
    """A client that is lost takes the runtime's connection with it, but what it had said is passed on
    first.
    """
    await client.wait_lost()
    if uploads:
        await asyncio.wait(uploads, timeout=LAST_WORDS)
    runtime.close()
    await runtime.gone()


async def _upload(ours: Stream, theirs: Stream) -> None:
    """Passes on the end of input only if it was said."""
    try:
        while data := await ours.read():
            await theirs.write(data)
    except Disconnected:
        ours.ignore()
        return
    if ours.ended:
        theirs.end()


async def _download(ours: Mapping[str, Stream], theirs: Mapping[str, Stream]) -> bytes:
    """Copies all output; returns what the runtime said on its error stream, empty if it was lost."""
    async with asyncio.TaskGroup() as group:
        for name in ("stdout", "stderr"):
            if name in ours:
                group.create_task(_copy(theirs[name], ours[name]))
        told = b""
        while data := await theirs["error"].read():
            told += data
    return told


async def _copy(theirs: Stream, ours: Stream) -> None:
    try:
        while data := await theirs.read():
            await ours.write(data)
    except Disconnected:
        theirs.ignore()
    ours.end()


async def _tell(error: Stream, told: bytes, dialect: Dialect) -> None:
    told = told or _failure("the container runtime ended the stream")
    message = told if dialect.status else failure_text(told)
    try:
        await error.write(message)
    except Disconnected:
        return
    error.end()


async def tell_failure(client: Session, message: str, dialect: Dialect) -> None:
    """For a client with nothing to be joined to."""
    error = (await _opened_by(client, ("error",)))["error"]
    await _tell(error, _failure(message), dialect)
    await client.finish()


def _failure(message: str) -> bytes:
    return msgspec.json.encode(internal(message).status())


def failure_text(status: bytes) -> bytes:
    """A Status for protocols before v4: nothing for success, else its message."""
    try:
        decoded = msgspec.json.decode(status, type=dict[str, object])
    except msgspec.DecodeError:
        return status
    return b"" if decoded.get("status") == "Success" else str(decoded.get("message", "")).encode()
