"""Remote commands: attach to a container of any cluster, and exec in it.

WebSocket is asked for first (`v5.channel.k8s.io`, which has a half close, then `v4.channel.k8s.io`), then
SPDY, as kubectl does: some proxies let only one of them through.
"""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from podling.client.https import HttpsTransport
from podling.client.login import Shown
from podling.model.errors import StatusError
from podling.streaming.session import Session, Stream
from podling.streaming.upgrade import Address, Refused, Upgraded, request_head, upgrade
from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire
from podling.streaming.wire import ProtocolError

WEBSOCKET = ("v5.channel.k8s.io", "v4.channel.k8s.io")
SPDY = "v4.channel.k8s.io"
FINAL = frozenset({401, 403, 404})
"""Answers that another protocol would not change."""
UNAUTHORIZED = 401

Query = Sequence[tuple[str, str]]


class Wanted(NamedTuple):
    """Which streams a command has. With a terminal there is no `stderr`."""

    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False

    def query(self) -> list[tuple[str, str]]:
        return [(name, "true") for name, value in self._asdict().items() if value]


class Ended(msgspec.Struct, frozen=True):
    """What the error stream said of the command's end: its exit code, or None and why."""

    exit_code: int | None
    message: str = ""


class Command:
    """An open connection to a command. A stream that was not wanted is None."""

    def __init__(self, session: Session, headers: Mapping[str, str], wanted: Wanted) -> None:
        names = [
            name
            for name in ("error", "stdin", "stdout", "stderr")
            if name == "error" or getattr(wanted, name)
        ]
        if wanted.tty:
            names.append("resize")
        opened = dict(zip(names, session.open_all(*({"streamtype": name} for name in names)), strict=True))
        self.headers = headers
        self.error = opened["error"]
        self.stdin: Stream | None = opened.get("stdin")
        self.stdout: Stream | None = opened.get("stdout")
        self.stderr: Stream | None = opened.get("stderr")
        self._resize: Stream | None = opened.get("resize")
        self._session = session

    async def resize(self, columns: int, rows: int) -> None:
        """Tell the command's terminal its size. Raises Disconnected."""
        if self._resize is not None:
            await self._resize.write(msgspec.json.encode({"Width": columns, "Height": rows}))

    async def ended(self) -> Ended | None:
        """What the error stream says at the end; None when the connection was lost before."""
        said = b""
        while piece := await self.error.read():
            said += piece
        return _ended(said) if said else None

    async def close(self) -> None:
        await self._session.finish()


async def attach(transport: HttpsTransport, path: str, query: Query, wanted: Wanted) -> Command:
    """`path` is that of the pod's `attach` or `exec`, `query` what it says beside the streams. Raises
    StatusError, OSError."""
    target = transport.target(path, [*query, *wanted.query()])
    try:
        upgraded = await _asked(transport, "GET", target, _web_socket())
    except Refused as refused:
        # A server that knows no such WebSocket answers 403, too, but says nothing more.
        if refused.status in FINAL and refused.body:
            raise StatusError.from_json(refused.status, refused.body) from None
    else:
        named = upgraded.headers.get("Sec-WebSocket-Protocol", "")
        if named not in WEBSOCKET:
            upgraded.drop()
            raise OSError(f'the server chose the protocol "{named}", which was not offered')
        session = Session(ChannelWire(SUBPROTOCOLS[named], client=True))
        upgraded.hand_to(session)
        return Command(session, upgraded.headers, wanted)
    from podling.streaming.spdy.connection import SpdyWire

    try:
        upgraded = await _asked(transport, "POST", target, _spdy())
    except Refused as refused:
        raise StatusError.from_json(refused.status, refused.body) from None
    session = Session(SpdyWire(client=True))
    upgraded.hand_to(session)
    command = Command(session, upgraded.headers, wanted)
    await session.answered()
    return command


def _web_socket() -> list[tuple[str, str]]:
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
        ("Sec-WebSocket-Protocol", ", ".join(WEBSOCKET)),
    ]


def _spdy() -> list[tuple[str, str]]:
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "SPDY/3.1"),
        ("X-Stream-Protocol-Version", SPDY),
        ("Content-Length", "0"),
    ]


async def _asked(
    transport: HttpsTransport, method: str, target: str, headers: list[tuple[str, str]]
) -> Upgraded:
    """Raises Refused, OSError. As after any 401, another credential is shown once if there is one."""
    shown = await transport.login.present()
    try:
        return await _upgraded(transport, shown, method, target, headers)
    except Refused as refused:
        if refused.status != UNAUTHORIZED or (other := await transport.login.renew(shown)) is None:
            raise
        return await _upgraded(transport, other, method, target, headers)


async def _upgraded(
    transport: HttpsTransport, shown: Shown, method: str, target: str, headers: list[tuple[str, str]]
) -> Upgraded:
    request = request_head(method, target, [*transport.head(shown), *headers])
    connect = functools.partial(transport.connect, shown)
    try:
        return await upgrade(Address("", 0, within=connect), request)
    except ProtocolError as error:
        raise OSError(str(error)) from error


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    status: str = ""
    message: str = ""
    details: _Details | None = None


def _ended(said: bytes) -> Ended:
    """The end that a Status tells, or a text from servers that know no Status."""
    try:
        status = msgspec.json.decode(said, type=_Status)
    except msgspec.DecodeError:
        return Ended(None, said.decode(errors="replace"))
    if status.status == "Success":
        return Ended(0)
    for cause in (status.details and status.details.causes) or ():
        if cause.reason == "ExitCode" and cause.message.isdecimal():
            return Ended(int(cause.message), status.message)
    return Ended(None, status.message)
