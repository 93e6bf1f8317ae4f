"""Watch fan-out over TLS: how many events a second reach how many watchers, while wrk patches pods.

The watchers are in a process of their own, which only decrypts and counts. Writes come as fast as the server
takes them, so what it spends on watchers and on writes shares one core. Run with `python bench/watch.py`.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import cast

import uvloop
from plot import Line, plot
from server import LISTED, LISTED_PODS, TOKEN, cpu_seconds, labelling, running, wrk
from table import Measurement, report

WATCHERS = 100
ROUNDS = 5
SECONDS = 2
GROWTH = (1, 3, 10, 30, 100, 300, 1000)


class Watcher(asyncio.Protocol):
    """Counts the frames it is sent: a newline ends each, and there is no other behind a brace."""

    seen = 0

    def __init__(self) -> None:
        self._last = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        head = f"GET {LISTED_PODS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan HTTP/1.1"
        cast(asyncio.WriteTransport, transport).write(
            f"{head}\r\nHost: x\r\nAuthorization: {TOKEN}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        Watcher.seen += data.count(b"}\n") + (self._last == b"}" and data[:1] == b"\n")
        self._last = data[-1:]


async def watch(port: int, watchers: int) -> None:
    """Be `watchers` clients; for each line on standard input, print how many frames they have had."""
    loop = asyncio.get_running_loop()
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    for _ in range(watchers):
        await loop.create_connection(Watcher, "127.0.0.1", port, ssl=tls)
    done = loop.create_future()

    def asked() -> None:
        if os.read(0, 1):
            print(Watcher.seen, flush=True)
        else:
            loop.remove_reader(0)
            done.set_result(None)

    loop.add_reader(0, asked)
    print("watching", flush=True)
    await done


class Watchers:
    """Those of another process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def seen(self) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("?")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def watching(url: str, watchers: int) -> Iterator[Watchers]:
    command = [sys.executable, __file__, "watch", url.rpartition(":")[2], str(watchers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        yield Watchers(process)


def fan_out(url: str, server: int, watchers: int) -> Measurement:
    """Frames a second, of all watchers together."""
    rates, cpu = [], []
    with watching(url, watchers) as others:
        for _ in range(ROUNDS):
            before, spent, begin = others.seen(), cpu_seconds(server), perf_counter()
            wrk(f"{url}{LISTED_PODS}", 8, SECONDS, labelling(LISTED))
            frames = others.seen() - before
            rates.append(frames / (perf_counter() - begin))
            cpu.append((cpu_seconds(server) - spent) / frames * 1e6)
    goal = "≥ 100,000/s" if watchers == WATCHERS else ""
    return Measurement(f"events to {watchers} watchers", "/s", rates, goal=goal, cpu=cpu)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary, running("podling", Path(temporary)) as (url, server):
        grown = {watchers: fan_out(url, server, watchers) for watchers in GROWTH}
    report("watch", list(grown.values()))
    lines = (
        Line("measured", [(watchers, found.best) for watchers, found in grown.items()]),
        Line(
            "had the server a core", [(watchers, 1e6 / min(found.cpu)) for watchers, found in grown.items()]
        ),
    )
    plot("watchers", "watchers", "events a second, all watchers together", lines)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["watch", port, watchers]:
            uvloop.run(watch(int(port), int(watchers)))
        case _:
            main()
