"""How soon a change of endpoints is in the kernel: write of an EndpointSlice → nftables' commit, by
`podling network` and by kube-proxy beside it, with few and with many services.

All of it runs in a network namespace of its own, so root is needed. kube-proxy is found in PODLING_PROGRAMS,
a directory with Kubernetes' programs; without it podling is measured alone. Run with `python
bench/services.py`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from table import Measurement, report

from podling.client import kubeconfig
from podling.client.client import Client
from podling.model.types.discovery import Endpoint, EndpointConditions, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import Node
from podling.model.types.service import Service, ServicePort, ServiceSpec

SIZES = (2, 300)
ALONE, BURST = 6, 100
APART = 1.2
"""Seconds between changes: kube-proxy gathers for one."""
OWN = "10.200.0.1"
NFTABLES_GROUP, NEW_GENERATION = 1 << 6, 10 << 8 | 15


class Commits:
    """The times at which nftables has committed something."""

    def __init__(self) -> None:
        self._link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
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
                data = memoryview(await asyncio.get_running_loop().sock_recv(self._link, 1 << 20))
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


async def fill(client: Client, first: int, last: int) -> None:
    for number in range(first, last):
        port = ServicePort(name="http", protocol="TCP", port=80, target_port=8080)
        meta = ObjectMeta(name=f"s{number}", namespace="default")
        await client.create(Service(metadata=meta, spec=ServiceSpec(ports=[port])))
        await client.create(slice_of(number, 4))


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
            await client.create(Node(metadata=ObjectMeta(name="bench")))
        except (OSError, kubeconfig.KubeconfigError):
            await asyncio.sleep(0.1)
        else:
            return client


async def main(directory: Path) -> None:
    data = ["--data-dir", str(directory)]
    podling = [sys.executable, "-m", "podling"]
    programs = os.environ.get("PODLING_PROGRAMS")
    serving = ("--advertise-address", OWN, "--service-cluster-ip-range", "10.96.0.0/16", "--audit-log", "off")
    measured: list[Measurement] = []
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
        there = 0
        for size in SIZES:
            await fill(client, there, size)
            there = size
            took: dict[str, list[list[float]]] = {}
            for name, command in reversed(proxies.items()):
                commits = Commits()
                with running(directory / f"{name}-{size}.log", *command):
                    await commits.next(60)
                    # kube-proxy has more to do after its first.
                    await asyncio.sleep(2)
                    took[name] = [
                        await measure(client, commits, ALONE, APART),
                        await measure(client, commits, BURST if name == "podling" else ALONE, 0.01),
                    ]
            for which, what in enumerate(("alone", "every 10 ms")):
                floor = statistics.median(took["kube-proxy"][which]) if programs else None
                goal = "≤ 3 ms" if which == 0 else ""
                title = f"a change {what}, {size} services"
                measured.append(Measurement(title, "ms", took["podling"][which], floor, goal))
                if programs:
                    measured.append(Measurement(f"{title}, kube-proxy", "ms", took["kube-proxy"][which]))
        await client.close()
    report("services", measured, "kube-proxy")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(
            subprocess.run(["unshare", "--net", sys.executable, __file__, "apart"], check=False).returncode
        )
    with tempfile.TemporaryDirectory() as made:
        have_network()
        asyncio.run(main(Path(made)))
