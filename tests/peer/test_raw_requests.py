"""R-SYS-8: bytes that are hardly HTTP are taken and refused as by Kubernetes, whose reader is Go's.

Podling's is that of aiohttp, which refuses some of what Go takes, and words it otherwise: `STRICTER`. It
takes an empty line before a request and more than one space in the first line, as RFC 9112 allows, where Go
refuses them.
"""

from __future__ import annotations

import socket

import pytest

from peer.server import Server

SECONDS = 20.0
GET, POST = b"GET /version HTTP/1.1", b"POST /apis HTTP/1.1"
END = b"0\r\n\r\n"


def request(*headers: bytes, first: bytes = GET, host: bytes = b"x", body: bytes = b"") -> bytes:
    return b"\r\n".join([first, b"Host: " + host, *headers, b"Connection: close", b"", body])


HOSTS = (
    b"",
    b"a:1",
    b"[::1]:1",
    b"a%20b",
    b"a'b",
    b"a=b;c",
    b"a b",
    b"a/b",
    b"a@b",
    b'a"b',
    b"a<b",
    b"a#b",
    b"a?b",
)
ALIKE = {
    **{f"host {host!r}": request(host=host) for host in (*HOSTS, b"a\\b", b"a^b", b"a{b}", "ü".encode())},
    **{
        f"expects {said!r}": request(b"Expect: " + said)
        for said in (b"x", b"", b"100-Continue", b"100-continue, x", b"x, 100-continue", b"100-continued")
    },
    **{f"version {number!r}": request(first=b"GET /version HTTP/" + number) for number in (b"2.0", b"0.9")},
    "version 1.0": b"GET /version HTTP/1.0\r\n\r\n",
    **{
        f"coded {coding!r}": request(b"Transfer-Encoding: " + coding, first=POST, body=END)
        for coding in (b"gzip, chunked", b"Chunked", b"chunked")
    },
    "coded in 1.0": b"POST /apis HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + END,
    **{
        f"trailer {name!r}": request(b"Transfer-Encoding: chunked", b"Trailer: " + name, first=POST, body=END)
        for name in (b"A", b"Content-Length", b"A, transfer-encoding ", b"Trailer")
    },
    "coded as nothing": request(b"Transfer-Encoding:"),
    "trailer of no chunks": request(b"Trailer: Content-Length"),
    "two hosts": request(b"Host: y"),
    **{f"long {said!r}": request(b"Content-Length: " + said, first=POST) for said in (b"0, 0", b"+0", b"-1")},
    **{
        f"header {line!r}": request(line)
        for line in (b"A: b\0", b"A: b\x01", b": b", b"no colon", b"A: \xff\xfe", b"A:b")
    },
    **{
        f"first line {line!r}": request(first=line)
        for line in (b"G@T /version HTTP/1.1", b"GET version HTTP/1.1", b"GET /version HTTP/1.1 ")
    },
}
STRICTER = {
    **{f"version {number!r}": request(first=b"GET /version HTTP/" + number) for number in (b"1.2", b"3.0")},
    "no host": b"GET /version HTTP/1.1\r\nConnection: close\r\n\r\n",
    **{
        f"coded {coding!r}": request(b"Transfer-Encoding: " + coding, first=POST, body=END)
        for coding in (b"", b"gzip", b"identity", b"chunked\r\nTransfer-Encoding: chunked")
    },
    "coded and long": request(b"Transfer-Encoding: chunked", b"Content-Length: 5", first=POST, body=END),
    "long twice": request(b"Content-Length: 0", b"Content-Length: 0", first=POST),
    "folded": request(b"A: b\r\n c"),
    "line feeds": request().replace(b"\r\n", b"\n"),
    "a path that is no ASCII": request(first="GET /vérsion HTTP/1.1".encode()),
    "a space behind a name": request(b"A : b"),
}
_REFUSED = b"HTTP/1.1 400 Bad Request", b"400 Bad Request"


def said(server: Server, data: bytes) -> tuple[bytes, bytes]:
    """The first line of the answer, and the body if it is no success."""
    with (
        socket.create_connection((server.host, server.port), timeout=SECONDS) as plain,
        server.tls.wrap_socket(plain, server_hostname=server.host) as connection,
    ):
        connection.sendall(data)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    line = head.partition(b"\r\n")[0]
    return line, b"" if b" 200 " in line else body


@pytest.mark.parametrize("name", ALIKE)
def test_hardly_http_is_answered_alike(name: str, kubernetes: Server, podling: Server) -> None:
    assert said(podling, ALIKE[name]) == said(kubernetes, ALIKE[name])


@pytest.mark.parametrize("name", STRICTER)
def test_what_aiohttp_does_not_take_is_refused(name: str, podling: Server) -> None:
    assert said(podling, STRICTER[name]) == _REFUSED
