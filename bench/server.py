"""The servers the benchmarks of the API talk to, each in a process of its own, and wrk to ask them.

`podling` is the API server over SQLite, as `podling up` runs it, or over the etcd it is given. `floor` is
what aiohttp alone can do: it reads what is sent and answers as many bytes as podling would, and nothing else.
Both serve TLS on uvloop.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from aiohttp import web

from podling.apiserver.assemble import ApiServer
from podling.apiserver.authn.authenticators import Authentication
from podling.apiserver.http.server import listening, tls_context
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import Request, User
from podling.apiserver.request.response import Response
from podling.assemble.etcd import open_etcd
from podling.assemble.process import started, tune
from podling.assemble.settle import EtcdOptions
from podling.machine.pki import Authority
from podling.model.time import SystemClock
from podling.storage.interface import Storage
from podling.storage.sqlite.store import open as open_sqlite

LISTED = 1000
"""Pods that are there from the beginning."""
TOKEN = "Bearer peer-admin"
"""Also that of the administrator of `upstream.py`."""
PODS = "/api/v1/namespaces/default/pods"
LISTED_PODS = "/api/v1/namespaces/listed/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"
LISTED_CONFIGS = "/api/v1/namespaces/listed/configmaps"
ROOT = User("bench", ("system:masters", "system:authenticated"))


class TokenAuthenticator:
    """wrk has no client certificates."""

    def authenticate(self, request: Request) -> User | None:
        return ROOT if request.headers.get("Authorization") == TOKEN else None


def pod(metadata: dict[str, object]) -> bytes:
    container = {"name": "app", "image": "busybox:1", "command": ["sleep", "1000"]}
    # podling adds no volume with a token unless it is told to, Kubernetes unless it is told not to.
    spec = {"automountServiceAccountToken": False, "containers": [container]}
    return json.dumps({"metadata": metadata, "spec": spec}).encode()


async def no_node(context: object, obj: object) -> Response:
    raise NotImplementedError


async def post(server: ApiServer, path: str, body: bytes) -> None:
    response = await server.handle(Request("POST", path, body=body, user=ROOT))
    assert response.status == 201, response.body


@asynccontextmanager
async def api_server(directory: Path, etcd: str = "") -> AsyncIterator[ApiServer]:
    """Over SQLite or the `etcd` at a URL, with two namespaces."""
    if etcd:
        storage: Storage = await open_etcd(EtcdOptions(servers=(etcd,)))
    else:
        storage = await open_sqlite(directory / "state.db")
    server = ApiServer.build(
        storage,
        KINDS,
        clock=SystemClock(),
        connector=no_node,
        authentication=Authentication([TokenAuthenticator()]),
    )
    await server.start()
    for namespace in ("default", "listed"):
        metadata = json.dumps({"metadata": {"name": namespace}}).encode()
        await post(server, "/api/v1/namespaces", metadata)
        account = b'{"metadata":{"name":"default"}}'
        await post(server, f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    yield server
    server.close()
    await storage.close()


async def serve_podling(directory: Path, etcd: str = "") -> None:
    async with api_server(directory, etcd) as server:
        await post(server, PODS, pod({"name": "one"}))
        await post(server, CONFIGS, b'{"metadata":{"name":"one"}}')
        for number in range(LISTED):
            await post(server, LISTED_PODS, pod({"name": f"pod-{number}"}))
            await post(server, LISTED_CONFIGS, b'{"metadata":{"name":"config-%d"}}' % number)
        async with listening(server.handle, "127.0.0.1", 0, tls(directory), end_streams=server.close) as port:
            await until_stopped(port)


async def serve_floor(directory: Path) -> None:
    """The path begins with the number of bytes to answer with."""
    body_of = functools.cache(lambda size: bytes(int(size)))

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.can_read_body:
            await request.read()
        size = request.path.split("/")[1]
        return web.Response(body=body_of(size), content_type="application/json")

    server = await asyncio.get_running_loop().create_server(
        web.Server(handle, access_log=None), "127.0.0.1", 0, ssl=tls(directory)
    )
    async with server:
        await until_stopped(server.sockets[0].getsockname()[1])


def tls(directory: Path) -> ssl.SSLContext:
    authority = Authority(directory / "pki", datetime.now(UTC))
    pair = authority.server("server", "server", ["127.0.0.1"])
    return tls_context(pair.certificate, pair.key, authority.ca.certificate)


async def until_stopped(port: int) -> None:
    started()
    print(port, flush=True)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


@contextmanager
def running(which: str, directory: Path, *etcd: str) -> Iterator[tuple[str, int]]:
    """URL and process id of `podling`, over `etcd` if one is given, or `floor`."""
    command = [sys.executable, __file__, which, str(directory), *etcd]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"https://127.0.0.1:{process.stdout.readline().strip()}", process.pid
        finally:
            process.terminate()


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def curl(url: str) -> bytes:
    return subprocess.run(
        ["curl", "-sk", "-H", f"Authorization: {TOKEN}", url], capture_output=True, check=True
    ).stdout


def wrk(url: str, connections: int, seconds: int, script: str = "") -> float:
    """Requests a second; none of them may fail."""
    return float(_said(r"Requests/sec:\s*([\d.]+)", url, connections, seconds, script)[1])


def wrk_waits(url: str, seconds: int, script: str = "") -> float:
    """Milliseconds that the median request waits for its answer, when one is asked after the other."""
    found = _said(r"50%\s+([\d.]+)(us|ms)", url, 1, seconds, script, "--latency")
    return float(found[1]) / {"us": 1000, "ms": 1}[found[2]]


def _said(
    pattern: str, url: str, connections: int, seconds: int, script: str, *options: str
) -> re.Match[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(script)
        lua.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-H", f"Authorization: {TOKEN}"]
        out = subprocess.run(
            [*command, *options, "-s", lua.name, url], check=True, capture_output=True, text=True
        ).stdout
    assert "Non-2xx" not in out, out
    match = re.search(pattern, out)
    assert match is not None, out
    return match


def posting(body: bytes) -> str:
    """A script; wrk sends no content type of its own, and JSON is the default."""
    return f"wrk.method = 'POST'\nwrk.body = [[{body.decode()}]]\n"


def labelling(spread: int = 0) -> str:
    """A script that patches one object, or `spread` pods in turn."""
    return f"""\
wrk.method = 'PATCH'
wrk.headers['Content-Type'] = 'application/merge-patch+json'
local n, spread = 0, {spread}
request = function()
  n = n + 1
  local path = wrk.path .. (spread > 0 and ('/pod-' .. n % spread) or '')
  return wrk.format(nil, path, nil, '{{"metadata":{{"labels":{{"n":"' .. n .. '"}}}}}}')
end
"""


def replacing(spread: int) -> str:
    """A script that replaces `spread` config maps in turn."""
    return f"""\
wrk.method = 'PUT'
local n = 0
request = function()
  n = n + 1
  local name = 'config-' .. n % {spread}
  local body = '{{"metadata":{{"name":"' .. name .. '"}},"data":{{"n":"' .. n .. '"}}}}'
  return wrk.format(nil, wrk.path .. '/' .. name, nil, body)
end
"""


if __name__ == "__main__":
    tune()
    which, directory, *more = sys.argv[1:]
    uvloop.run({"podling": serve_podling, "floor": serve_floor}[which](Path(directory), *more))
