"""What many services of four endpoints take of nftables, without an API server: the script of their table,
its commit, and a connection to a cluster IP beside one to its endpoint, in turns.

It makes itself a network namespace, so root is needed. Run with `python bench/service_table.py [NUMBER OF
SERVICES…]`.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from services import OWN, have_network
from table import Measurement, report

from podling.network.nft import library
from podling.network.services import Behind, Frontend
from podling.network.table import IPV4, ServiceTable, Shape

SIZES = (10, 10_000, 30_000)
PORT = 8080
RANGE, CLUSTER_IP = "10.96.0.0/16", "10.96.0.5"
"""The address whose endpoint is OWN."""
CONNECTIONS = 500


def services(count: int) -> Iterator[tuple[Frontend, Behind]]:
    for number in range(count):
        high, low = divmod(number, 250)
        address = f"10.96.{high}.{low}"
        endpoints = tuple((f"10.{64 + high // 250}.{high % 250}.{low}", PORT + n) for n in range(4))
        if address == CLUSTER_IP:
            endpoints = ((OWN, PORT),)
        yield (
            Frontend("IPv4", "tcp", 80, address),
            Behind(("default", f"s{number}"), "http", "cluster", endpoints),
        )


def connected(place: tuple[str, int]) -> float:
    """Milliseconds that a connection takes."""
    began = time.perf_counter()
    with socket.create_connection(place) as made:
        took = (time.perf_counter() - began) * 1000
        # Ends it at once, so that none is left to be looked for.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return took


def measured(size: int) -> Iterator[Measurement]:
    table, run = ServiceTable(Shape(IPV4, "bench", "10.64.0.0/10", RANGE)), library()
    wanted = dict(services(size))
    began = time.perf_counter()
    table.hold(wanted)
    script = table.whole()
    written = time.perf_counter()
    run(script)
    ended = time.perf_counter()
    goal = "≤ 1.5 s" if size == 10_000 else ""
    yield Measurement(f"script, {size} services", "s", [written - began])
    yield Measurement(f"script and commit, {size} services", "s", [ended - began], goal=goal)
    with socket.create_server((OWN, PORT), backlog=CONNECTIONS * 2):
        turns = [(connected((OWN, PORT)), connected((CLUSTER_IP, 80))) for _ in range(CONNECTIONS)]
    direct, led = zip(*turns, strict=True)
    yield Measurement(f"a connection, {size} services", "ms", led, direct, "flat")


def main(sizes: Sequence[int]) -> None:
    have_network()
    report("service_table", [one for size in sizes for one in measured(size)], "to the endpoint")


if __name__ == "__main__":
    if os.environ.get("PODLING_BENCH_APART") is None:
        alone = ["unshare", "--net", sys.executable, __file__, *sys.argv[1:]]
        environment = {**os.environ, "PODLING_BENCH_APART": "1"}
        sys.exit(subprocess.run(alone, env=environment, check=False).returncode)
    main([int(size) for size in sys.argv[1:]] or SIZES)
