"""A connection through a proxy: HTTP's CONNECT (RFC 9110, 9.3.6), to the proxy with or without TLS, and
SOCKS 5 (RFC 1928) with user and password (RFC 1929). Nothing is read of it but the proxy's own answers: no
server that is asked here says anything before its client has.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from urllib.parse import SplitResult, unquote

from podling.client.login import basic
from podling.client.proxies import PORTS, SOCKS
from podling.client.route import send

MAX_ANSWER = 64 * 1024
VERSION, NO_LOGIN, PASSWORD, CONNECT, BY_NAME, GRANTED = 5, 0, 2, 1, 3, 0
Login = tuple[str, str] | None
LENGTHS = {1: 4, 4: 16}
"""Of SOCKS addresses, by their type."""
WHY_NOT = {
    1: "it failed",
    2: "its rules do not allow it",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "timed out",
    7: "it knows no CONNECT",
    8: "it knows no names",
}


async def tunnel(proxy: SplitResult, host: str, port: int, tls: ssl.SSLContext | None) -> asyncio.Transport:
    """To `host` and `port` through `proxy`, whose URL may have user and password; `tls` is for one of https.
    Reading is paused. Raises OSError."""
    loop = asyncio.get_running_loop()
    answers = _Answers()
    at = proxy.hostname or ""
    is_secured = proxy.scheme == "https"
    transport, _ = await loop.create_connection(
        lambda: answers,
        at,
        proxy.port or PORTS[proxy.scheme],
        ssl=tls if is_secured else None,
        server_hostname=at if is_secured else None,
    )
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    user = None if proxy.username is None else (unquote(proxy.username), unquote(proxy.password or ""))
    try:
        through = _socks if proxy.scheme in SOCKS else _connect
        why = await through(transport, answers, host, port, authority, user)
        if why:
            raise OSError(f"the proxy {at} refused the connection to {authority}: {why}")
    except BaseException:
        transport.abort()
        raise
    return transport


async def _connect(
    transport: asyncio.Transport, answers: _Answers, host: str, port: int, authority: str, user: Login
) -> str:
    """Why not."""
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if user is not None:
        lines.append(f"Proxy-Authorization: {basic(*user)}")
    send(transport, "\r\n".join([*lines, "", ""]).encode())
    head = await answers.until(lambda said: b"\r\n\r\n" in said)
    status = head.partition(b"\r\n")[0].decode(errors="replace")
    return "" if status.partition(" ")[2].startswith("200") else status


async def _socks(
    transport: asyncio.Transport, answers: _Answers, host: str, port: int, authority: str, user: Login
) -> str:
    """Why not. The proxy looks up the name, which only its network may know."""
    offered = bytes([NO_LOGIN] if user is None else [NO_LOGIN, PASSWORD])
    send(transport, bytes([VERSION, len(offered)]) + offered)
    version, method = await answers.until(lambda said: len(said) >= 2)
    if version != VERSION:
        return "it does not speak SOCKS 5"
    if method == PASSWORD and user is not None:
        words = [word.encode() for word in user]
        if not all(0 < len(word) < 256 for word in words):
            return "user and password have 1 to 255 bytes"
        send(transport, b"\x01" + b"".join(bytes([len(word)]) + word for word in words))
        _, failed = await answers.until(lambda said: len(said) >= 2)
        if failed:
            return "user and password are wrong"
    elif method != NO_LOGIN:
        return "it wants a user and a password" if user is None else "it wants another login"
    name = host.encode("idna") if not host.isascii() else host.encode()
    send(transport, bytes([VERSION, CONNECT, 0, BY_NAME, len(name)]) + name + port.to_bytes(2, "big"))
    answer = await answers.until(lambda said: len(said) >= 5 and len(said) >= _length(said))
    return "" if answer[1] == GRANTED else WHY_NOT.get(answer[1], f"code {answer[1]}")


def _length(answer: bytes) -> int:
    """Of an answer with an address, of which there are 5 bytes."""
    return 6 + LENGTHS.get(answer[3], 1 + answer[4])


class _Answers(asyncio.Protocol):
    """Reads as long as an answer is awaited."""

    def __init__(self) -> None:
        self._said = b""
        self._more = asyncio.Event()
        self._is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._said += data
        self._transport.pause_reading()
        self._more.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._more.set()

    async def until(self, is_whole: Callable[[bytes], bool]) -> bytes:
        """Raises OSError."""
        while not is_whole(self._said):
            if self._is_over:
                raise OSError("the proxy ended the connection")
            if len(self._said) > MAX_ANSWER:
                raise OSError("the proxy does not come to an end")
            self._more.clear()
            self._transport.resume_reading()
            await self._more.wait()
        said, self._said = self._said, b""
        return said
