"""R-SYS-1: a part that runs alone tells how it is, and nothing else, to whoever asks on this machine."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime

import pytest

from podling.apiserver.observe import components
from podling.assemble.health import HOST, answer, answering
from podling.machine.start import StartError
from podling.process import small_http
from podling.process.tls import connecting_context
from podling.storage.memory import MemoryStorage
from ports import free_port

NOW = datetime.now(UTC)


def fine() -> str:
    return ""


def late() -> str:
    return "objects have not been read yet"


CHECKS = {"healthz": {"ping": fine}, "readyz": {"shutdown": fine, "sched-handler-sync": late}}


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        ("GET", "/healthz", 200, "ok"),
        ("POST", "/healthz", 200, "ok"),
        ("GET", "/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
        (
            "GET",
            "/readyz",
            500,
            "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
        ),
        ("GET", "/readyz?exclude=sched-handler-sync", 200, "ok"),
        ("GET", "/livez", 404, "404 page not found\n"),
    ],
)
def test_what_is_told(method: str, target: str, status: int, body: str) -> None:
    said = answer(method, target, CHECKS)
    assert (said[0], said[2].decode()) == (status, body)


async def asked(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port, ssl=connecting_context(verify=False))
    writer.write(sent)
    try:
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()


async def test_component_statuses_know_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(components, "PORTS", {"scheduler": port})
    checks = components.components(MemoryStorage(), is_whole=False)
    async with answering("kube-scheduler", port, CHECKS, NOW):
        (said,) = (await components.component("scheduler", checks["scheduler"])).conditions
    assert (said.type, said.status, said.message) == ("Healthy", "True", "ok")
    (said,) = (await components.component("scheduler", checks["scheduler"])).conditions
    assert said.status == "False"


async def test_one_connection_is_one_request() -> None:
    port, twice = free_port(), b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 2
    async with answering("kube-scheduler", port, CHECKS, NOW):
        said = await asked(port, twice)
        assert (said.count(b"HTTP/1.1 200 OK"), said[-6:]) == (1, b"\r\n\r\nok")
        head = await asked(port, twice.replace(b"GET", b"HEAD"))
        assert head.endswith(b"Connection: close\r\n\r\n")


@pytest.mark.parametrize(
    "sent", [b"\r\n\r\n", b"GET\r\n\r\n", b"GET / /\r\n\r\n", b"x" * 100_000, b"GET //[ x\r\n\r\n"]
)
async def test_what_is_no_request_gets_no_answer(sent: bytes) -> None:
    port = free_port()
    async with answering("kube-scheduler", port, CHECKS, NOW):
        assert b"200" not in await asked(port, sent)
        assert b"200" in await asked(port, b"GET /healthz HTTP/1.1\r\n\r\n")


async def test_who_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_http, "LONGEST", 0.05)
    port = free_port()
    async with answering("kube-scheduler", port, CHECKS, NOW):
        assert await asked(port, b"GET /hea") == b""


async def test_connections_are_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_http, "MOST", 1)
    port = free_port()
    async with answering("kube-scheduler", port, CHECKS, NOW):
        _, first = await asyncio.open_connection(HOST, port, ssl=connecting_context(verify=False))
        assert await asked(port, b"GET /healthz HTTP/1.1\r\n\r\n") == b""
        first.close()


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"kube-scheduler cannot listen on {HOST}, port {port}"):
            async with answering("kube-scheduler", port, CHECKS, NOW):
                raise AssertionError("it listens")
    async with answering("kube-scheduler", 0, CHECKS, NOW):
        """Nowhere."""


@pytest.mark.parametrize(
    ("method", "target", "verb", "path"),
    [
        ("GET", "/healthz/", "get", "/healthz/"),
        ("GET", "/healthz/ping", "get", "/healthz/ping"),
        ("DELETE", "/metrics?a", "delete", "/metrics"),
        ("GET", "/%2fx", "get", "//x"),
    ],
)
def test_nothing_else_is_told(method: str, target: str, verb: str, path: str) -> None:
    status, content_type, body, _ = answer(method, target, CHECKS)
    assert (status, content_type) == (403, "application/json")
    message = f'forbidden: User "system:anonymous" cannot {verb} path "{path}"'
    assert json.loads(body)["message"] == message
