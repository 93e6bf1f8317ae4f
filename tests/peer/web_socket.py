"""A WebSocket client that keeps what it is sent as it was framed."""

from __future__ import annotations

import socket
import ssl
from typing import NamedTuple

from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, Event, TextMessage

from peer.server import Server

KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class Spoken(NamedTuple):
    """`subprotocol` is None when the answer names none; `messages` are str or bytes, as they were framed;
    `ended` is the code the server closed with, None when it did not; `body` is that of a refusal."""

    code: int
    subprotocol: str | None
    messages: list[str | bytes]
    ended: int | None
    body: bytes


def speak(server: Server, target: str, subprotocols: list[str], enough: int = 1000) -> Spoken:
    """Ask for an upgrade and read until the server ends it, or `enough` messages are there."""
    plain = socket.create_connection((server.host, server.port), timeout=5)
    with server.tls.wrap_socket(plain, server_hostname=server.host) as connection:
        connection.sendall(_handshake(server, target, subprotocols))
        head, rest = _head(connection)
        code = int(head[0].split()[1])
        named = dict(line.split(": ", 1) for line in head[1:])
        if code != 101:
            rest += _exactly(connection, int(named.get("Content-Length", 0)) - len(rest))
            return Spoken(code, None, [], None, rest)
        messages, ended = _messages(connection, rest, enough)
        return Spoken(code, named.get("Sec-WebSocket-Protocol"), messages, ended, b"")


def _handshake(server: Server, target: str, subprotocols: list[str]) -> bytes:
    lines = [
        f"GET {target} HTTP/1.1",
        f"Host: {server.host}:{server.port}",
        f"Origin: {server.url}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {KEY}",
    ]
    if subprotocols:
        lines.append(f"Sec-WebSocket-Protocol: {', '.join(subprotocols)}")
    return "\r\n".join([*lines, "", ""]).encode()


def _head(connection: ssl.SSLSocket) -> tuple[list[str], bytes]:
    read = b""
    while b"\r\n\r\n" not in read:
        data = connection.recv(65536)
        assert data, f"the connection ended within {read!r}"
        read += data
    head, _, rest = read.partition(b"\r\n\r\n")
    return head.decode().split("\r\n"), rest


def _exactly(connection: ssl.SSLSocket, length: int) -> bytes:
    read = b""
    while len(read) < length:
        data = connection.recv(length - len(read))
        assert data, "the connection ended within a body"
        read += data
    return read


def _messages(connection: ssl.SSLSocket, rest: bytes, enough: int) -> tuple[list[str | bytes], int | None]:
    frames = Connection(ConnectionType.CLIENT)
    messages: list[str | bytes] = []
    data = rest
    while True:
        if data:
            frames.receive_data(data)
        for event in frames.events():
            if isinstance(event, CloseConnection):
                return messages, event.code
            messages += _message(event)
        if len(messages) >= enough:
            return messages, None
        data = connection.recv(65536)
        if not data:
            return messages, None


def _message(event: Event) -> list[str | bytes]:
    if isinstance(event, TextMessage):
        return [event.data]
    return [bytes(event.data)] if isinstance(event, BytesMessage) else []
