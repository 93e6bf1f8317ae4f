"""HTTP/1.1 of a client: whole, byte by byte, with more behind it, cut anywhere, and beside h11."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.process.http_client import (
    MAX_HEAD,
    OVER,
    AnswerReader,
    Head,
    Incomplete,
    Malformed,
    request_head,
)


class Found(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    is_kept: bool
    rest: bytes = b""


def read(pieces: Sequence[bytes], *, ends: bool) -> Found | None:
    """None for an answer that has not come to its end."""
    answer, head, body = AnswerReader(), None, b""
    for piece in [*filter(None, pieces), *([b""] if ends else [])]:
        answer.receive(piece)
        while (event := answer.next()) is not None:
            if isinstance(event, Head):
                head = event
            elif isinstance(event, bytes):
                assert event
                body += event
            else:
                assert event is OVER and head is not None
                return Found(head.status, dict(head.headers), body, answer.is_kept, answer.rest())
    return None


def one_by_one(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


LENGTH, CHUNKED = {"Content-Length": "4"}, {"Transfer-Encoding": "chunked"}
ANSWERS = {
    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody": Found(200, LENGTH, b"body", True),
    b"HTTP/1.1 200\r\ncontent-length:4\t\r\n\r\nbody": Found(200, LENGTH, b"body", True),
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n": Found(200, {"Content-Length": "0"}, b"", True),
    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody": Found(
        200, {"Content-Length": "4, 4"}, b"body", True
    ),
    b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody": Found(200, LENGTH, b"body", False),
    b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 4\r\n\r\nbody": Found(
        200, {"Connection": "x, Close", **LENGTH}, b"body", False
    ),
    b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbod\r\n01;x=y\r\ny\r\n0\r\n\r\n": Found(
        404, CHUNKED, b"body", True
    ),
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n": Found(
        200, {"Transfer-Encoding": "Chunked"}, b"0123456789", True
    ),
    b"HTTP/1.1 204 No Content\r\n\r\n": Found(204, {}, b"", True),
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n": Found(304, LENGTH, b"", True),
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n": Found(101, {"Upgrade": "x"}, b"", True),
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\n\r\n": Found(
        204, {}, b"", True
    ),
    b"HTTP/1.1 200 OK\r\nX: \xe4\r\nX: b:c\r\n\r\n": Found(200, {"X": "ä, b:c"}, b"", False),
}


@pytest.mark.parametrize("data", ANSWERS)
def test_an_answer_is_read_however_it_comes(data: bytes) -> None:
    """Cut anywhere it has not come to its end, or says so where only the connection's end says it."""
    wanted = ANSWERS[data]
    is_told = "X" not in wanted.headers
    assert read([data], ends=not is_told) == wanted
    assert read(one_by_one(data), ends=not is_told) == wanted
    for at in range(len(data)):
        assert read([data[:at]], ends=False) is None
        if is_told:
            with pytest.raises(Incomplete):
                read([data[:at]], ends=True)
    if is_told:
        assert read([data + b"more"], ends=False) == wanted._replace(is_kept=False, rest=b"more")


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    data = b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
    assert read([data], ends=True) == read(one_by_one(data), ends=True)
    assert read([data], ends=True) == Found(200, {}, b"until the end", False)
    assert read([data], ends=False) is None


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2 200 OK\r\n",
        b"HTTP/1.1 2000 OK\r\n",
        b"HTTP/1.1 2x0 OK\r\n",
        b"HTTP/1.1\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n",
        b"HTTP/1.1 200 OK\r\n: nothing\r\n",
        b"HTTP/1.1 200 OK\r\nA : space\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"x" * (MAX_HEAD + 2),
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * MAX_HEAD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * MAX_HEAD,
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        read([data], ends=False)
    if len(data) < MAX_HEAD:
        with pytest.raises(Malformed):
            read(one_by_one(data), ends=False)


@given(st.binary(max_size=200), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", *ANSWERS]), st.booleans())
def test_random_answers_raise_only_the_declared_errors(data: bytes, begin: bytes, ends: bool) -> None:
    for whole in (begin + data, begin[: len(data)] + data):
        try:
            read([whole], ends=ends)
        except (Malformed, Incomplete):
            continue


BODIES = st.lists(st.binary(max_size=20), max_size=4)


@given(
    st.sampled_from([200, 201, 204, 304, 404, 500]),
    st.lists(st.sampled_from([("X", "y"), ("Connection", "close"), ("Content-Type", "a/b")]), unique=True),
    BODIES,
    st.sampled_from(["length", "chunks", "none"]),
    st.integers(1, 50),
)
def test_it_reads_as_h11_reads(
    status: int, headers: list[tuple[str, str]], body: list[bytes], how: str, step: int
) -> None:
    """What h11 writes as a server, in pieces of any size."""
    server, data = h11.Connection(h11.SERVER), b""
    server.receive_data(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    while not isinstance(server.next_event(), h11.EndOfMessage):
        pass
    if status in (204, 304):
        body = []
    framing = {
        "length": [("Content-Length", str(sum(map(len, body))))],
        "chunks": [("Transfer-Encoding", "chunked")],
        "none": [("Connection", "close")] if ("Connection", "close") not in headers else [],
    }[how]
    data += server.send(h11.Response(status_code=status, headers=[*headers, *framing])) or b""
    for piece in body:
        data += server.send(h11.Data(data=piece)) or b""
    data += server.send(h11.EndOfMessage()) or b""
    found = read([data[at : at + step] for at in range(0, len(data), step)], ends=True)
    assert found is not None and (found.status, found.body) == (status, b"".join(body))
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    seen = client.next_event()
    assert isinstance(seen, h11.Response)
    assert {name.title().decode(): value.decode() for name, value in seen.headers} == found.headers
    if how != "none":
        while not isinstance(client.next_event(), h11.EndOfMessage):
            pass
        assert found.is_kept == (client.our_state is h11.DONE and client.their_state is h11.DONE)


def test_a_request_cannot_smuggle_another() -> None:
    assert request_head("GET", "/a?b=c", [("X", "ä")]) == "GET /a?b=c HTTP/1.1\r\nX: ä\r\n\r\n".encode()
    for target in ("/a b", "/a\r\n", "/ä", "/\x7f"):
        with pytest.raises(Malformed):
            request_head("GET", target, [])
    for value in ("a\r\nY: b", "a\nb", "a\0b"):
        with pytest.raises(Malformed):
            request_head("GET", "/", [("X", value)])
