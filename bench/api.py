"""The API server over TLS against what aiohttp alone can do, with wrk as the client.

The floor is a handler that answers the same number of bytes and does nothing else. Each server runs as a
process of its own, on uvloop; storage is SQLite, so every create and patch is durable. Run with
`python bench/api.py`; `--profile FILE` writes a py-spy flame graph of GET instead.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from aiohttp import web
from table import Measurement, report

from podling.apiserver.http import listening, tls_context
from podling.apiserver.registry.kinds import KINDS
from podling.apiserver.request import Request, User
from podling.apiserver.response import Response
from podling.apiserver.server import ApiServer
from podling.model.time import SystemClock
from podling.pki import Authority
from podling.storage.sqlite.store import open as open_sqlite

ROUNDS = 3
SECONDS = 3
LISTED = 1000
TOKEN = "Bearer bench"
PODS = "/api/v1/namespaces/default/pods"
LISTED_PODS = "/api/v1/namespaces/listed/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"
ROOT = User("bench", ("system:masters", "system:authenticated"))


class TokenAuthenticator:
    """wrk has no client certificates."""

    def authenticate(self, request: Request) -> User | None:
        return ROOT if request.headers.get("Authorization") == TOKEN else None


def pod(name: dict[str, str]) -> bytes:
    container = {"name": "app", "image": "busybox:1", "command": ["sleep", "1000"]}
    return json.dumps({"metadata": name, "spec": {"containers": [container]}}).encode()


async def no_node(context: object, obj: object) -> Response:
    raise NotImplementedError


async def serve_podling(directory: Path) -> None:
    storage = await open_sqlite(directory / "state.db")
    server = ApiServer.build(
        storage, KINDS, clock=SystemClock(), connector=no_node, authenticators=[TokenAuthenticator()]
    )
    await server.start()
    for path, body in furniture():
        response = await server.handle(Request("POST", path, body=body, user=ROOT))
        assert response.status == 201, response.body
    async with listening(server.handle, "127.0.0.1", 0, tls(directory), end_streams=server.close) as port:
        await until_stopped(port)
    await storage.close()


def furniture() -> Iterator[tuple[str, bytes]]:
    for path, name in (
        ("", "default"),
        ("/default/serviceaccounts", "default"),
        ("/default/configmaps", "c"),
    ):
        yield f"/api/v1/namespaces{path}", json.dumps({"metadata": {"name": name}}).encode()
    yield "/api/v1/namespaces", b'{"metadata":{"name":"listed"}}'
    yield "/api/v1/namespaces/listed/serviceaccounts", b'{"metadata":{"name":"default"}}'
    yield PODS, pod({"name": "one"})
    for number in range(LISTED):
        yield LISTED_PODS, pod({"name": f"pod-{number}"})


async def serve_floor(directory: Path) -> None:
    body = bytes(int((directory / "size").read_text()))

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    server = await asyncio.get_running_loop().create_server(
        web.Server(handle, access_log=None), "127.0.0.1", 0, ssl=tls(directory)
    )
    async with server:
        await until_stopped(server.sockets[0].getsockname()[1])


def tls(directory: Path) -> object:
    authority = Authority(directory / "pki", datetime.now(UTC))
    pair = authority.server("server", "server", ["127.0.0.1"])
    return tls_context(pair.certificate, pair.key, authority.ca.certificate)


async def until_stopped(port: int) -> None:
    print(port, flush=True)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


SERVERS = {"podling": serve_podling, "floor": serve_floor}


@contextmanager
def running(which: str, directory: Path) -> Iterator[tuple[str, int]]:
    """URL and process id of a server in a process of its own."""
    command = [sys.executable, __file__, which, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"https://127.0.0.1:{process.stdout.readline().strip()}", process.pid
        finally:
            process.terminate()


def wrk(url: str, connections: int, *, script: str = "", seconds: int = SECONDS) -> float:
    """Requests a second; none of them may fail."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(script)
        lua.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-H", f"Authorization: {TOKEN}"]
        out = subprocess.run(
            [*command, "-s", lua.name, url], check=True, capture_output=True, text=True
        ).stdout
    assert "Non-2xx" not in out, out
    match = re.search(r"Requests/sec:\s*([\d.]+)", out)
    assert match is not None, out
    return float(match[1])


def posting(body: bytes) -> str:
    """A script; wrk sends no content type of its own, and JSON is the default."""
    return f"wrk.method = 'POST'\nwrk.body = [[{body.decode()}]]\n"


LABEL = """\
wrk.method = 'PATCH'
wrk.headers['Content-Type'] = 'application/merge-patch+json'
local n = 0
request = function()
  n = n + 1
  local path = wrk.path .. (SPREAD and ('/pod-' .. n % SPREAD) or '')
  return wrk.format(nil, path, nil, '{"metadata":{"labels":{"n":"' .. n .. '"}}}')
end
"""


def rounds(measure: Callable[[], float]) -> list[float]:
    return [measure() for _ in range(ROUNDS)]


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with running("podling", directory) as (url, _):
            size = len(
                subprocess.run(
                    ["curl", "-sk", "-H", f"Authorization: {TOKEN}", f"{url}{PODS}/one"],
                    capture_output=True,
                    check=True,
                ).stdout
            )
            (directory / "size").write_text(str(size))
            with running("floor", directory) as (floor_url, _):
                gets: list[float] = []
                floors: list[float] = []
                for _ in range(ROUNDS):
                    floors.append(wrk(floor_url, 16))
                    gets.append(wrk(f"{url}{PODS}/one", 16))
            lists = rounds(lambda: wrk(f"{url}{LISTED_PODS}", 4))
            one = rounds(lambda: wrk(f"{url}{PODS}/one", 8, script=LABEL))
            many = rounds(lambda: wrk(f"{url}{LISTED_PODS}", 8, script=f"SPREAD = {LISTED}\n{LABEL}"))
            configs = rounds(
                lambda: wrk(f"{url}{CONFIGS}", 8, script=posting(b'{"metadata":{"generateName":"c-"}}'))
            )
            creates = rounds(lambda: wrk(f"{url}{PODS}", 8, script=posting(pod({"generateName": "p-"}))))
        floor = sorted(floors)[ROUNDS // 2]
        report(
            "api",
            [
                Measurement("GET pod by name, 16 connections", "/s", gets, floor, ">= 0.7 x aiohttp static"),
                Measurement(f"LIST {LISTED} pods, 4 connections", "/s", lists, goal=">= 400/s"),
                Measurement("create pods, 8 connections", "/s", creates, goal=">= 2,500/s"),
                Measurement("create config maps, 8 connections", "/s", configs),
                Measurement("merge-patch a label, 8 connections", "/s", many, goal=">= 2,000/s"),
                Measurement("merge-patch a label of one pod, 8 connections", "/s", one),
            ],
        )


def profile(output: str) -> None:
    with tempfile.TemporaryDirectory() as temporary, running("podling", Path(temporary)) as (url, pid):
        spy = str(Path(sys.executable).with_name("py-spy"))
        recording = subprocess.Popen([spy, "record", "-p", str(pid), "-d", "4", "-o", output])
        wrk(f"{url}{PODS}/one", 16, seconds=5)
        recording.wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["podling" | "floor" as which, directory]:
            uvloop.run(SERVERS[which](Path(directory)))
        case ["--profile", output]:
            profile(output)
        case _:
            main()
