"""What cluster DNS answers: a core's answers a second beside an echo on the same loop, what one client waits,
alone and beside writes of the API server of the same process, the time from a change to its answer, and the
memory of many services.

python bench/dns.py
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import uvloop
from table import Measurement, report

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.assemble.process import tune
from podling.client.client import Client
from podling.dns.responder import Responder
from podling.dns.server import A_TURN, Server, Sockets
from podling.dns.wire import IN, A, encode, header
from podling.dns.zone import SERVICE_LABEL, Zone
from podling.model.time import SystemClock
from podling.model.types.core import ConfigMap, Namespace
from podling.model.types.discovery import Endpoint, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Service, ServicePort, ServiceSpec
from podling.storage.sqlite.store import open as open_sqlite

HOST = "127.0.0.1"
SERVICES, ENDPOINTS = 5_000, 4
ROUNDS, SECONDS, WINDOW = 5, 1.0, 64
LONE = 5_000
"""Questions of the client that waits for each answer."""
CHANGES = 500
WRITES, WRITERS = 2_000, 8
"""Objects that are written in a second, by so many at a time."""
BESIDE = 4.0
"""Seconds of questions beside the writes."""


def service(number: int, address: int = 0) -> Service:
    port = ServicePort(name="http", protocol="TCP", port=80)
    high, low = divmod(number + address, 250)
    ips = [f"10.96.{high}.{low + 1}"]
    meta = ObjectMeta(name=f"s{number}", namespace="default")
    return Service(metadata=meta, spec=ServiceSpec(cluster_ip=ips[0], cluster_ips=ips, ports=[port]))


def slice_of(number: int) -> EndpointSlice:
    labels = {SERVICE_LABEL: f"s{number}"}
    endpoints = [Endpoint(addresses=[f"10.{n}.{number // 250}.{number % 250}"]) for n in range(ENDPOINTS)]
    meta = ObjectMeta(name=f"s{number}-a", namespace="default", labels=labels)
    return EndpointSlice(metadata=meta, endpoints=endpoints, ports=[SlicePort(name="http", port=8080)])


def question(number: int) -> bytes:
    name = encode(f"s{number}.default.svc.cluster.local")
    head = header(number.to_bytes(2, "big"), 0x0100, 1, 0, 0, 0)
    return head + name + A.to_bytes(2, "big") + IN.to_bytes(2, "big")


def memory() -> float:
    """Of this process, in MB."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


Objects = list[tuple[Service, EndpointSlice]]


def everything() -> Objects:
    return [(service(number), slice_of(number)) for number in range(SERVICES)]


def filled(objects: Objects) -> Zone:
    zone = Zone("cluster.local", time.time)
    zone.is_synced = True
    zone.namespace_changed(None, Namespace(metadata=ObjectMeta(name="default")))
    for one, its in objects:
        zone.service_changed(None, one)
        zone.slice_changed(None, its)
    return zone


def echo(sock: socket.socket) -> None:
    for _ in range(A_TURN):
        try:
            message, sender = sock.recvfrom(4096)
        except BlockingIOError:
            return
        sock.sendto(message, sender)


async def write(client: Client, counted: list[int], is_warm: asyncio.Event) -> None:
    """As one of WRITERS that together write WRITES objects a second, if the process can."""
    loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    made = await client.create(ConfigMap(metadata=ObjectMeta(generate_name="w-", namespace="default")))
    for number in itertools.count():
        await asyncio.sleep(max(began + number * WRITERS / WRITES - loop.time(), 0))
        made = await client.update(msgspec.structs.replace(made, data={"number": str(number)}))
        counted[0] += 1
        if counted[0] == WRITES:
            is_warm.set()


async def no_node(context: object, obj: object) -> Response:
    raise NotImplementedError


@asynccontextmanager
async def written(counted: list[int], is_warm: asyncio.Event) -> AsyncIterator[None]:
    """An API server on SQLite that is written to, while the block runs; warm after WRITES."""
    with tempfile.TemporaryDirectory() as directory:
        storage = await open_sqlite(Path(directory) / "state.db")
        server = ApiServer.build(storage, KINDS, clock=SystemClock(), connector=no_node)
        await server.start()
        client = Client(LocalTransport(server.handle, User("bench", (MASTERS,))))
        await client.create(Namespace(metadata=ObjectMeta(name="default")))
        async with asyncio.TaskGroup() as tasks:
            writers = [tasks.create_task(write(client, counted, is_warm)) for _ in range(WRITERS)]
            yield
            for one in writers:
                one.cancel()
        server.close()
        await storage.close()


def serve(told: Connection) -> None:
    """Says the ports of the echo and of cluster DNS and the zone's memory, without the objects; then,
    whenever asked, the seconds of processor time that it has taken. The message `write` has it write objects;
    from the answer on it says how many it has written."""

    async def main() -> None:
        tune()
        loop = asyncio.get_running_loop()
        objects = everything()
        before = memory()
        zone = filled(objects)
        for number in range(SERVICES):
            zone.find(encode(f"s{number}.default.svc.cluster.local"), A)
        sockets, floor = Sockets(HOST, 0), Sockets(HOST, 0)
        loop.add_reader(floor.udp, echo, floor.udp)
        told.send((floor.port, sockets.port, memory() - before))

        counted, are_wanted, is_warm = [0], asyncio.Event(), asyncio.Event()

        def asked() -> None:
            if told.recv() == "write":
                are_wanted.set()
            else:
                told.send(counted[0] if are_wanted.is_set() else time.process_time())

        loop.add_reader(told.fileno(), asked)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Server(Responder(zone), lambda asked, client, reply: None).run(sockets))
            await are_wanted.wait()
            async with written(counted, is_warm):
                await is_warm.wait()
                told.send(counted[0])
                await asyncio.Event().wait()

    uvloop.run(main())


def client(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((HOST, port))
    sock.settimeout(2)
    return sock


def rate(told: Connection, port: int) -> tuple[float, float]:
    """Answers a second of the server's processor time, and of the clock, with WINDOW questions on the way."""
    packets = [question(number) for number in range(1000)]
    with client(port) as sock:
        for packet in packets[:WINDOW]:
            sock.send(packet)
        told.send(None)
        used, began, count = told.recv(), time.perf_counter(), 0
        while time.perf_counter() - began < SECONDS:
            for packet in packets:
                sock.recv(512)
                sock.send(packet)
            count += len(packets)
        told.send(None)
        return count / (told.recv() - used), count / (time.perf_counter() - began)


def waits(port: int, seconds: float = 0.0) -> list[float]:
    """Milliseconds for each of one client's questions: LONE of them, or as many as it asks in a time."""
    samples: list[float] = []
    packet, end = question(7), time.perf_counter() + seconds
    with client(port) as sock:
        while time.perf_counter() < end if seconds else len(samples) < LONE:
            began = time.perf_counter()
            sock.send(packet)
            sock.recv(512)
            samples.append((time.perf_counter() - began) * 1e3)
    return samples


def changes() -> list[float]:
    """Milliseconds from a change of a service to the first answer with it, in this process."""
    zone = filled(everything())
    responder = Responder(zone)
    samples = []
    for number in range(CHANGES):
        old, new = service(number), service(number, SERVICES + number)
        responder.reply(question(number))
        began = time.perf_counter()
        zone.service_changed(old, new)
        said = responder.reply(question(number))
        samples.append((time.perf_counter() - began) * 1e3)
        assert said and said[-4:] == socket.inet_aton(new.spec.cluster_ip)
    return samples


def main() -> None:
    ours, its = multiprocessing.get_context("fork").Pipe()
    server = multiprocessing.get_context("fork").Process(target=serve, args=(its,), daemon=True)
    server.start()
    floor, port, size = ours.recv()
    echoes, answers = [], []
    for _ in range(ROUNDS):
        echoes.append(rate(ours, floor))
        answers.append(rate(ours, port))
    lone_echo, lone = waits(floor), waits(port)
    ours.send("write")
    before, began = ours.recv(), time.perf_counter()
    beside_echo, beside = waits(floor, seconds=BESIDE), waits(port, seconds=BESIDE)
    ours.send(None)
    writes = (ours.recv() - before) / (time.perf_counter() - began)
    server.kill()
    server.join()
    report(
        "dns",
        [
            Measurement(
                "answers, of the server's processor time",
                "/s",
                [one for one, _ in answers],
                floor=[one for one, _ in echoes],
                goal="≥ 50,000/s",
            ),
            Measurement(
                "answers, by the clock",
                "/s",
                [one for _, one in answers],
                floor=[one for _, one in echoes],
            ),
            Measurement("one client's question", "ms", lone, floor=lone_echo, goal="p50 ≤ 0.1 ms"),
            Measurement(
                f"one client's question beside {writes:,.0f} writes a second",
                "ms",
                beside,
                floor=statistics.median(beside_echo),
                goal="p99 ≤ 5 ms",
            ),
            Measurement("the echo beside them", "ms", beside_echo),
            Measurement("change → answer", "ms", changes(), goal="≤ 2 ms"),
            Measurement("memory of 5,000 services, 20,000 endpoints", "MB", [size], goal="≤ 8 MB"),
        ],
    )


if __name__ == "__main__":
    main()
