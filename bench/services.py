"""How soon a change of endpoints is in the kernel: write of an EndpointSlice → nftables' commit, by
`podling network` and by kube-proxy beside it, with few and with many services of four endpoints. With it what
so many services take: from the start of the program to its first commit, memory, and a connection to a
cluster IP beside one to its endpoint.

All of it runs in a network namespace of its own, so root is needed. kube-proxy is found in PODLING_PROGRAMS,
a directory with Kubernetes' programs; without it podling is measured alone. Run with `python
bench/services.py [NUMBER OF SERVICES…]`.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from table import Measurement, report

from podling.client import kubeconfig
from podling.client.client import Client
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node, NodeAddress, NodeStatus
from podling.model.types.service import Service, ServicePort, ServiceSpec

SIZES = (2, 300)
ALONE_ROW, BURST_ROW = "a change alone", "a change every 10 ms"
START, MEMORY = "start until all are in the kernel", "memory"
DIRECT, CONNECTION = "a connection to the endpoint", "a connection, to that of its endpoint"
ROWS = (
    (ALONE_ROW, "ms", "≤ 3 ms"),
    (BURST_ROW, "ms", "≤ 3 ms"),
    (START, "s", "≤ 1.5 s with 10,000"),
    (MEMORY, "MB", ""),
    (CONNECTION, "ms", "flat"),
)
ALONE, BURST = 6, 100
APART = 1.2
"""Seconds between changes: kube-proxy gathers for one."""
CONNECTIONS = 300
WRITERS = 8
OWN = "10.200.0.1"
PORT = 8080
SO_RCVBUFFORCE = 33
NFTABLES_GROUP, NEW_GENERATION = 1 << 6, 10 << 8 | 15


class Commits:
    """The times at which nftables has committed something."""

    def __init__(self) -> None:
        self._link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
        self._link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
        self._link.bind((0, NFTABLES_GROUP))
        self._link.setblocking(False)

    def drain(self) -> None:
        while True:
            try:
                self._link.recv(1 << 20)
            except BlockingIOError:
                return
            except OSError:
                continue

    async def next(self, within: float) -> float:
        async with asyncio.timeout(within):
            while True:
                try:
                    data = memoryview(await asyncio.get_running_loop().sock_recv(self._link, 1 << 20))
                except OSError as error:
                    if error.errno != errno.ENOBUFS:
                        raise
                    # More than fits is told of, all at once, when it has been committed.
                    return time.perf_counter()
                while data:
                    length, kind = struct.unpack_from("=IH", data)
                    if kind == NEW_GENERATION:
                        return time.perf_counter()
                    data = data[length + 3 & ~3 :]


@contextmanager
def running(log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as program:
        try:
            yield program
        finally:
            program.terminate()


def address(number: int, first: int) -> str:
    return f"10.{first}.{number // 250}.{number % 250 + 2}"


def slice_of(number: int, endpoints: int) -> EndpointSlice:
    name = f"s{number}"
    return EndpointSlice(
        metadata=ObjectMeta(name=name, namespace="default", labels={"kubernetes.io/service-name": name}),
        address_type="IPv4",
        endpoints=[
            Endpoint([address(number * 5 + n, 64)], EndpointConditions(ready=True)) for n in range(endpoints)
        ],
        ports=[SlicePort(name="http", protocol="TCP", port=8080)],
    )


async def fill(client: Client, numbers: Iterator[int]) -> None:
    """Some do this at a time, each with the next of `numbers`."""
    for number in numbers:
        port = ServicePort(name="http", protocol="TCP", port=80, target_port=8080)
        meta = ObjectMeta(name=f"s{number}", namespace="default")
        await client.create(Service(metadata=meta, spec=ServiceSpec(ports=[port])))
        await client.create(slice_of(number, 4))


async def have_reachable(client: Client) -> str:
    """The cluster IP of a service whose endpoint is OWN."""
    port = ServicePort(name="http", protocol="TCP", port=PORT, target_port=PORT)
    meta = ObjectMeta(name="reachable", namespace="default")
    made = await client.create(Service(metadata=meta, spec=ServiceSpec(ports=[port])))
    one = slice_of(0, 1)
    one.metadata = ObjectMeta(
        name="reachable", namespace="default", labels={"kubernetes.io/service-name": "reachable"}
    )
    one.endpoints = [Endpoint([OWN], EndpointConditions(ready=True))]
    await client.create(one)
    return made.spec.cluster_ip


def connections(*addresses: str) -> list[list[float]]:
    """Milliseconds that connecting to each took, who took turns."""
    took: list[list[float]] = [[] for _ in addresses]
    with socket.create_server((OWN, PORT), backlog=CONNECTIONS * len(addresses)):
        for _ in range(CONNECTIONS):
            for address, of_address in zip(addresses, took, strict=True):
                began = time.perf_counter()
                with socket.create_connection((address, PORT)) as made:
                    of_address.append((time.perf_counter() - began) * 1000)
                    # Ends it at once, so that none is left to be looked for.
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return took


def resident(program: subprocess.Popen[bytes]) -> float:
    """Megabytes."""
    status = Path(f"/proc/{program.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def measure(client: Client, commits: Commits, changes: int, apart: float) -> list[float]:
    """Milliseconds from each write to the commit that follows it."""
    took = []
    for number in range(changes):
        await asyncio.sleep(apart)
        commits.drain()
        wanted = slice_of(0, 3 + number % 2)
        began = time.perf_counter()
        await client.update(wanted)
        took.append((await commits.next(60) - began) * 1000)
    return took


def have_network() -> None:
    for command in (
        "link set lo up",
        "link add own type veth peer name wire",
        "link set wire up",
        "link set own up",
        f"address add {OWN}/24 dev own",
        "route add default dev own",
    ):
        subprocess.run(["ip", *command.split()], check=True)


async def first_client(directory: Path) -> Client:
    """Once the API server serves."""
    while True:
        try:
            client = Client(kubeconfig.read(directory / "admin.conf").transport())
            # Without an address kube-proxy waits for one for half a minute.
            status = NodeStatus(addresses=[NodeAddress(type="InternalIP", address=OWN)])
            await client.create(Node(metadata=ObjectMeta(name="bench"), status=status))
        except (OSError, kubeconfig.KubeconfigError):
            await asyncio.sleep(0.1)
        else:
            return client


async def of_proxy(
    client: Client, command: list[str], log: Path, name: str, reachable: str
) -> dict[str, list[float]]:
    commits, began = Commits(), time.perf_counter()
    with running(log, *command) as program:
        loaded = await commits.next(120) - began
        # kube-proxy has more to do after its first.
        await asyncio.sleep(2)
        memory = resident(program)
        direct, through = await asyncio.to_thread(connections, OWN, reachable)
        return {
            ALONE_ROW: await measure(client, commits, ALONE, APART),
            BURST_ROW: await measure(client, commits, BURST if name == "podling" else ALONE, 0.01),
            START: [loaded],
            MEMORY: [memory],
            DIRECT: direct,
            CONNECTION: through,
        }


async def main(directory: Path, sizes: Sequence[int]) -> None:
    data = ["--data-dir", str(directory)]
    podling = [sys.executable, "-m", "podling"]
    programs = os.environ.get("PODLING_PROGRAMS")
    serving = ("--advertise-address", OWN, "--service-cluster-ip-range", "10.96.0.0/16", "--audit-log", "off")
    measured: list[Measurement] = []
    there = 0
    with running(directory / "apiserver.log", *podling, "apiserver", *data, *serving):
        client = await first_client(directory)
        ours = [
            *podling,
            "network",
            *data,
            "--node-name",
            "bench",
            "--service-cluster-ip-range",
            "10.96.0.0/16",
        ]
        proxies: dict[str, list[str]] = {"podling": ours}
        if programs:
            proxies["kube-proxy"] = [
                str(Path(programs) / "kube-proxy"),
                f"--kubeconfig={directory / 'kube-proxy.conf'}",
                *("--hostname-override=bench", "--proxy-mode=nftables"),
                *("--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"),
                "--conntrack-tcp-timeout-close-wait=0",
            ]
        reachable = await have_reachable(client)
        numbers = iter(range(max(sizes)))
        for size in sizes:
            # Each takes the next until so many are there.
            wanted = itertools.islice(numbers, size - there)
            await asyncio.gather(*(fill(client, wanted) for _ in range(WRITERS)))
            there = size
            took = {}
            for name, command in reversed(proxies.items()):
                log = directory / f"{name}-{size}.log"
                took[name] = await of_proxy(client, command, log, name, reachable)
                # nft reads the chains of all tables at each change, those of a proxy that has ended, too.
                await asyncio.to_thread(subprocess.run, ["nft", "flush", "ruleset"], check=True)
            for what, unit, goal in ROWS:
                floor = took["kube-proxy"][what] if programs else None
                if what == CONNECTION:
                    floor = took["podling"][DIRECT]
                middle = statistics.median(floor) if floor else None
                title = f"{what}, {size} services"
                measured.append(Measurement(title, unit, took["podling"][what], middle, goal))
                if programs:
                    measured.append(Measurement(f"{title}, kube-proxy", unit, took["kube-proxy"][what]))
        await client.close()
    report("services", measured, "kube-proxy")


if __name__ == "__main__":
    if os.environ.get("PODLING_BENCH_APART") is None:
        alone = ["unshare", "--net", sys.executable, __file__, *sys.argv[1:]]
        sys.exit(
            subprocess.run(alone, env={**os.environ, "PODLING_BENCH_APART": "1"}, check=False).returncode
        )
    with tempfile.TemporaryDirectory() as made:
        have_network()
        asyncio.run(main(Path(made), [int(size) for size in sys.argv[1:]] or SIZES))
