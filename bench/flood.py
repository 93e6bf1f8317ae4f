"""A quiet client beside each flood: what one who asks for a pod now and then waits while another does harm.

Each flood is a process of its own, of the lowest priority, against the API server over TLS on loopback; it
ends after `SECONDS` and holds at most `MOST` connections. Quiet time and flood take turns, and in each round
every flood has its turn, so that what else the machine does falls on all of them. A flood's figure is the
median over the rounds of the client's p99. The floor is the median of the p99 of all quiet times of the run:
that of a single one says little, 1.3 to 6 ms. `python bench/flood.py`, or with the names of some floods.

With `--peer` Kubernetes' own API server has its turn in each round, too, and the floor of a flood is what
its quiet client waits beside that flood: two processors for client, flood and server are few for anybody.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from server import CONFIGS, LISTED_PODS, PODS, TOKEN, pod, running
from table import Measurement, report

ROUNDS = 3
SECONDS = 2.0
EVERY = 0.005
"""Seconds between two requests of the quiet client."""
WORKERS = 4
MOST = 300
MEBIBYTE = 1 << 20
AUTHORIZED = f"Authorization: {os.environ.get('FLOOD_AUTHORIZATION', TOKEN)}\r\n"
JSON_PATCH = "Content-Type: application/json-patch+json\r\n"
YAML = "Content-Type: application/yaml\r\n"


def message(method: str, target: str, headers: str = AUTHORIZED, body: bytes = b"") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\nHost: x\r\n{headers}{length}\r\n".encode() + body


def quantity() -> bytes:
    described = json.loads(pod({"name": "dear"}))
    limits = {"memory": f"{'1' * 200_000}.{'1' * 200_000}"}
    described["spec"]["containers"][0]["resources"] = {"limits": limits}
    return message("POST", PODS, body=json.dumps(described).encode())


def json_patch() -> bytes:
    steps = [{"op": "add", "path": "/data", "value": {f"k{n}": "v" for n in range(10_000)}}]
    steps += [{"op": "move", "from": f"/data/k{n}", "path": f"/data/m{n}"} for n in range(5_000)]
    return message("PATCH", f"{CONFIGS}/flooded", AUTHORIZED + JSON_PATCH, json.dumps(steps).encode())


def finalizers() -> bytes:
    named = {"name": "dear", "finalizers": [f"example.com/f{n}" for n in range(30_000)]}
    return message("POST", f"{CONFIGS}?dryRun=All", body=json.dumps({"metadata": named}).encode())


def yaml_body() -> bytes:
    lines = ["metadata: {name: dear}", "data:", *(f"  k{n}: 'v'" for n in range(20_000))]
    return message("POST", f"{CONFIGS}?dryRun=All", AUTHORIZED + YAML, "\n".join(lines).encode())


def label_selector() -> bytes:
    labels = "%2C".join(f"k{n}!%3Dv" for n in range(20_000))
    return message("GET", f"{LISTED_PODS}?labelSelector={labels}")


def field_selector() -> bytes:
    fields = "%2C".join("metadata.name!%3Dv" for n in range(20_000))
    return message("GET", f"{LISTED_PODS}?fieldSelector={fields}")


REPEATED: dict[str, Callable[[], bytes]] = {
    "anonymous, a query of 1 MB": lambda: message("GET", f"{PODS}?{'a&' * (MEBIBYTE // 2 - 200)}", ""),
    "anonymous, a path of 1 MB": lambda: message("GET", f"/api/v1/{'%61/' * (MEBIBYTE // 4 - 200)}", ""),
    "anonymous, 1 MB of headers": lambda: message(
        "GET", PODS, "".join(f"X-Forwarded-For: {'1.1.1.1,' * 8000}\r\n" for _ in range(16))
    ),
    "anonymous, a body of 3 MB": lambda: message("POST", PODS, "", bytes(3 * MEBIBYTE)),
    "quantities of 400 kB": quantity,
    "a JSON patch of 5,000 moves": json_patch,
    "30,000 finalizers": finalizers,
    "YAML of 20,000 lines": yaml_body,
    "a label selector of 20,000 terms": label_selector,
    "a field selector of 20,000 terms": field_selector,
    "lists of 1,000 pods": lambda: message("GET", LISTED_PODS),
}
"""What workers say again and again, as soon as they are answered."""


class Client:
    """Connections to one server, which need not show who it is."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url)
        self._tls = ssl.create_default_context()
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._address.hostname, self._address.port
        return await asyncio.open_connection(host, port, ssl=self._tls, limit=1 << 24)

    async def repeat(self, said: bytes) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await self.connect()
                try:
                    while True:
                        writer.write(said)
                        if not await answered(reader):
                            break
                finally:
                    writer.transport.abort()

    async def greet(self) -> None:
        """Connect and go."""
        while True:
            with suppress(OSError):
                _, writer = await self.connect()
                writer.transport.abort()

    async def dawdle(self) -> None:
        """Send a head a byte at a time."""
        while True:
            with suppress(OSError):
                _, writer = await self.connect()
                head = itertools.chain(b"GET /", itertools.repeat(ord("a")))
                while not writer.is_closing():
                    writer.write(bytes([next(head)]))
                    await asyncio.sleep(0.2)


async def answered(reader: asyncio.StreamReader) -> bool:
    """Read one answer; False when the server ends the connection after it."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), None)
    if length is not None:
        await reader.readexactly(length)
    else:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
    return b"connection: close" not in lines


HOLDING: dict[str, tuple[int, Callable[[Client], Coroutine[None, None, None]]]] = {
    "new connections without end": (WORKERS, Client.greet),
    "300 heads a byte at a time": (MOST, Client.dawdle),
}


async def flood(name: str, url: str) -> None:
    """Do harm until the time is over, and say so on the first line when it has begun."""
    client = Client(url)
    count, act = HOLDING.get(name) or (WORKERS, None)
    said = b"" if act else REPEATED[name]()
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS + 1), asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(act(client) if act else client.repeat(said))
            await asyncio.sleep(0.5)
            print("begun", flush=True)


EVERY_FLOOD = [*HOLDING, *REPEATED]


@contextmanager
def flooding(name: str, url: str) -> Iterator[None]:
    command = [sys.executable, __file__, "--flood", name, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=lambda: os.nice(19)) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield
        finally:
            process.kill()


async def quiet(url: str, seconds: float) -> float:
    """The p99 of a request by name, in milliseconds."""
    reader, writer = await Client(url).connect()
    said, waited, end = message("GET", f"{PODS}/one"), [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        writer.write(said)
        await answered(reader)
        waited.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(EVERY)
    writer.close()
    return statistics.quantiles(waited, n=100)[98] if len(waited) > 1 else waited[0]


def resident(pid: int) -> float:
    """MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def prepare(url: str) -> None:
    reader, writer = await Client(url).connect()
    writer.write(message("POST", CONFIGS, body=b'{"metadata":{"name":"flooded"}}'))
    await answered(reader)
    writer.close()


def waited(names: Sequence[str], *urls: str) -> tuple[list[float], list[dict[str, list[float]]]]:
    """How long the first server's quiet client waits when there is no flood, and each one's beside each."""
    idle: list[float] = []
    waits: list[dict[str, list[float]]] = [{name: [] for name in names} for _ in urls]
    for _, name in itertools.product(range(ROUNDS), names):
        idle.append(asyncio.run(quiet(urls[0], SECONDS)))
        for url, found in zip(urls, waits, strict=True):
            with flooding(name, url):
                found[name].append(asyncio.run(quiet(url, SECONDS)))
    return idle, waits


def beside_peer(names: list[str]) -> None:
    from upstream import running_upstream

    with ExitStack() as stack:
        ours, theirs = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        urls = [
            stack.enter_context(running("podling", ours))[0],
            stack.enter_context(running_upstream(theirs))[0],
        ]
        for url in urls:
            asyncio.run(prepare(url))
            asyncio.run(quiet(url, 1))
        _, (found, peer) = waited(names, *urls)
    report(
        "flood-peer", [Measurement(name, "ms", found[name], peer[name]) for name in names], "kube-apiserver"
    )


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as temporary, running("podling", Path(temporary)) as (url, server):
        asyncio.run(prepare(url))
        asyncio.run(quiet(url, 1))
        begun = resident(server)
        idle, (found,) = waited(names, url)
        floor = statistics.median(idle)
        measurements = [Measurement(name, "ms", found[name], floor, "≤ 5 x idle") for name in names]
        kept = Measurement("memory of the server afterwards", "MB", [resident(server)], begun)
        report("flood", [*measurements, kept])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--flood", name, url]:
            asyncio.run(flood(name, url))
        case ["--peer", *names]:
            beside_peer(names or EVERY_FLOOD)
        case names:
            main(names or EVERY_FLOOD)
