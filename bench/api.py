"""The API server over TLS against what aiohttp alone can do with as many bytes, or against Kubernetes' own
API server and etcd, with wrk as the client.

Each measurement and what it is compared with take turns, so that what else the machine does falls on both;
storage is SQLite, or etcd that waits for the disk, so every write is durable. Run with `python bench/api.py`,
or with `--peer [ROUNDS]` for the comparison with Kubernetes, with `--etcd [ROUNDS [WORD]]` when podling keeps
its objects in an etcd, too: beside what an etcd alone does, and of the cases with a word if one is given.
`--profile FILE` writes a py-spy flame graph of GET instead.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from http.client import HTTPSConnection
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

import uvloop
from server import (
    CONFIGS,
    LISTED,
    LISTED_CONFIGS,
    LISTED_PODS,
    PODS,
    TOKEN,
    cpu_seconds,
    curl,
    labelling,
    pod,
    posting,
    replacing,
    running,
    wrk,
    wrk_waits,
)
from table import Measurement, report
from watch import watching

if TYPE_CHECKING:
    from upstream import Etcd

from podling.assemble.etcd import open_etcd
from podling.assemble.settle import EtcdOptions

ROUNDS = 5
SECONDS = 2
WATCHERS = 100
VALUE = 900
"""Bytes of a pod as it is stored."""
TOLD = 100
"""Changes of which a watcher is told, one after the other."""


class Case(NamedTuple):
    """`answers` is a path whose answer is as long as those of the case."""

    name: str
    path: str
    connections: int
    script: str = ""
    answers: str = f"{PODS}/one"
    goal: str = ""


class Asked(NamedTuple):
    """A server and its processes."""

    url: str
    pids: Sequence[int]

    def cpu(self) -> float:
        return sum(cpu_seconds(pid) for pid in self.pids)


ONE = f"{PODS}/one"
CASES = (
    Case("GET pod by name, 16 connections", ONE, 16, goal="≥ 0.7 x floor"),
    Case(f"LIST {LISTED} pods, 4 connections", LISTED_PODS, 4, answers=LISTED_PODS, goal="≥ 400/s"),
    Case("create pods, 8 connections", PODS, 8, posting(pod({"generateName": "p-"})), goal="≥ 2,500/s"),
    Case("create config maps, 8 connections", CONFIGS, 8, posting(b'{"metadata":{"generateName":"c-"}}')),
    Case(
        "update config maps, 8 connections",
        LISTED_CONFIGS,
        8,
        replacing(LISTED),
        answers=f"{CONFIGS}/one",
    ),
    Case("merge-patch a label, 8 connections", LISTED_PODS, 8, labelling(LISTED), goal="≥ 2,000/s"),
    Case("merge-patch a label of one pod, 8 connections", ONE, 8, labelling()),
)


def measured(case: Case, url: str, server: int, floor_url: str) -> Measurement:
    size = len(curl(f"{url}{case.answers}"))
    rates, floors, cpu = [], [], []
    for _ in range(ROUNDS):
        floors.append(wrk(f"{floor_url}/{size}", case.connections, SECONDS, case.script))
        spent = cpu_seconds(server)
        rates.append(wrk(f"{url}{case.path}", case.connections, SECONDS, case.script))
        cpu.append((cpu_seconds(server) - spent) / (rates[-1] * SECONDS) * 1e6)
    return Measurement(case.name, "/s", rates, floors, case.goal, cpu)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with running("podling", directory) as (url, server), running("floor", directory) as (floor_url, _):
            report("api", [measured(case, url, server, floor_url) for case in CASES])


def beside(case: Case, servers: Sequence[Asked], rounds: int) -> list[Measurement]:
    """Requests a second of podling beside those of its peer, and what one takes of the processors."""
    rates, cpu = _samples(), _samples()
    for _ in range(rounds):
        for which, asked in enumerate(servers):
            spent = asked.cpu()
            rates[which].append(wrk(f"{asked.url}{case.path}", case.connections, SECONDS, case.script))
            cpu[which].append((asked.cpu() - spent) / (rates[which][-1] * SECONDS) * 1e6)
    what = case.name.partition(",")[0]
    return [
        Measurement(case.name, "/s", rates[0], rates[1]),
        Measurement(f"  {what}: processor of one", "µs", cpu[0], cpu[1]),
    ]


def _samples() -> tuple[list[float], list[float]]:
    """Those of podling, and those of its peer."""
    return [], []


def fanned_out(servers: Sequence[Asked], rounds: int) -> Measurement:
    """Events a second that reach all watchers together, while pods are patched."""
    rates = _samples()
    for which, asked in enumerate(servers):
        writing = f"{asked.url}{LISTED_PODS}"
        with watching(asked.url, WATCHERS) as watchers:
            while watchers.seen() < WATCHERS:
                # They are connected, but the server may not have come to what they ask.
                wrk(writing, 1, 1, labelling(LISTED))
            for _ in range(rounds):
                before, begin, frames = watchers.seen(), perf_counter(), 0
                while not frames:
                    # A server that others leave no processor tells nobody for seconds.
                    wrk(writing, 8, SECONDS, labelling(LISTED))
                    frames = watchers.seen() - before
                rates[which].append(frames / (perf_counter() - begin))
    return Measurement(f"events to {WATCHERS} watchers", "/s", rates[0], rates[1])


def _connected(asked: Asked) -> HTTPSConnection:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    host, _, port = asked.url.removeprefix("https://").partition(":")
    return HTTPSConnection(host, int(port), context=trusting)


def told(servers: Sequence[Asked]) -> Measurement:
    """How long after a patch was sent the one watcher of an idle server knows of it."""
    waits = _samples()
    headers = {"Authorization": TOKEN, "Content-Type": "application/merge-patch+json"}
    with ExitStack() as stack:
        pairs = []
        for asked in servers:
            watcher, writer = (stack.enter_context(closing(_connected(asked))) for _ in range(2))
            fields = "fieldSelector=metadata.name%3Done"
            watcher.request("GET", f"{CONFIGS}?watch=1&resourceVersion=0&{fields}", headers=headers)
            events = watcher.getresponse()
            events.readline()
            pairs.append((events, writer))
        for number in range(TOLD):
            for which, (events, writer) in enumerate(pairs):
                begin = perf_counter()
                writer.request("PATCH", f"{CONFIGS}/one", json.dumps({"data": {"n": str(number)}}), headers)
                events.readline()
                waits[which].append((perf_counter() - begin) * 1000)
                writer.getresponse().read()
    return Measurement("PATCH until a watcher is told", "ms", waits[0], waits[1])


def one_by_one(servers: Sequence[Asked], rounds: int) -> list[Measurement]:
    """How long the one client of an idle server waits for what is current, and for a write: medians of rounds
    in turns. The client is wrk, since one in Python takes as long as the server."""
    reads, writes = _samples(), _samples()
    body = posting(b'{"metadata":{"generateName":"o-"}}')
    for _ in range(rounds):
        for which, asked in enumerate(servers):
            reads[which].append(wrk_waits(f"{asked.url}{ONE}", SECONDS))
            writes[which].append(wrk_waits(f"{asked.url}{CONFIGS}", SECONDS, body))
    return [
        Measurement("GET pod, one client", "ms", *reads, goal="≤ 1 ms"),
        Measurement("create a config map, one client", "ms", *writes, goal="≤ 2 ms"),
    ]


def etcd_alone(etcd: Etcd, rounds: int) -> list[Measurement]:
    """Creations a second of podling's store alone, of values as long as a pod's, 8 at a time and one by one,
    and what one takes of the processors, etcd's included: no server of this store does more."""
    rates, cpu, waits = [], [], []

    async def run() -> None:
        storage = await open_etcd(EtcdOptions(servers=(etcd.url,)))
        value = pod({"name": "p" * (VALUE - len(pod({"name": ""})))})
        numbers = count()

        async def create() -> None:
            await storage.create(f"/registry/pods/default/alone-{next(numbers)}", value)

        async def creating(until: float) -> None:
            while perf_counter() < until:
                await create()

        for _ in range(rounds):
            before, spent = next(numbers), sum(map(cpu_seconds, etcd.pids)) + process_time()
            async with asyncio.TaskGroup() as tasks:
                for _ in range(8):
                    tasks.create_task(creating(perf_counter() + SECONDS))
            made = next(numbers) - before - 1
            rates.append(made / SECONDS)
            spent = sum(map(cpu_seconds, etcd.pids)) + process_time() - spent
            cpu.append(spent / made * 1e6)
        for _ in range(TOLD):
            begin = perf_counter()
            await create()
            waits.append((perf_counter() - begin) * 1000)
        await storage.close()

    uvloop.run(run())
    return [
        Measurement("etcd alone: create, 8 at a time", "/s", rates),
        Measurement("  processor of one", "µs", cpu),
        Measurement("etcd alone: create, one by one", "ms", waits),
    ]


def peer(rounds: int, word: str = "", *, over_etcd: bool = False) -> None:
    """podling, over SQLite or an etcd of its own, beside Kubernetes' own API server and etcd, which
    `PODLING_UPSTREAM` makes."""
    # It needs what tests need; the other benchmarks do not.
    from upstream import etcd_at, running_upstream, unpacked

    with ExitStack() as stack:
        ours, theirs = (
            Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in ("podling", "kubernetes")
        )
        alone = []
        if over_etcd:
            with (
                tempfile.TemporaryDirectory() as other,
                etcd_at(unpacked(theirs / "programs"), Path(other)) as one,
            ):
                alone = etcd_alone(one, rounds)
        kubernetes = Asked(*stack.enter_context(running_upstream(theirs)))
        etcd = [stack.enter_context(etcd_at(theirs / "programs", ours))] if over_etcd else []
        url, pid = stack.enter_context(running("podling", ours, *(one.url for one in etcd)))
        servers = Asked(url, [pid, *(pid for one in etcd for pid in one.pids)]), kubernetes
        cases = [case for case in CASES if word in case.name]
        found = [one for case in cases for one in beside(case, servers, rounds)]
        if not word:
            found += [fanned_out(servers, rounds), told(servers)]
        found += one_by_one(servers, rounds)
        report("api-etcd" if over_etcd else "api-peer", found + alone, beside="kube-apiserver")


def profile(output: str) -> None:
    with tempfile.TemporaryDirectory() as temporary, running("podling", Path(temporary)) as (url, pid):
        spy = str(Path(sys.executable).with_name("py-spy"))
        recording = subprocess.Popen([spy, "record", "-p", str(pid), "-d", "4", "-o", output])
        wrk(f"{url}{ONE}", 16, seconds=5)
        recording.wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--profile", output]:
            profile(output)
        case ["--peer", *rounds]:
            peer(int(rounds[0]) if rounds else ROUNDS)
        case ["--etcd", *given]:
            peer(int(given[0]) if given else ROUNDS, *given[1:], over_etcd=True)
        case _:
            main()
