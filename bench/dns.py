"""What cluster DNS answers: a core's answers a second beside an echo on the same loop, what one client waits,
the time from a change to its answer, and the memory of many services.

python bench/dns.py
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop
from table import Measurement, report

from podling.dns.responder import Responder
from podling.dns.server import A_TURN, Server, Sockets
from podling.dns.wire import IN, A, encode, header
from podling.dns.zone import SERVICE_LABEL, Zone
from podling.model.types.core import Namespace
from podling.model.types.discovery import Endpoint, EndpointSlice, SlicePort
from podling.model.types.meta import ObjectMeta
from podling.model.types.service import Service, ServicePort, ServiceSpec

HOST = "127.0.0.1"
SERVICES, ENDPOINTS = 5_000, 4
ROUNDS, SECONDS, WINDOW = 5, 1.0, 64
LONE = 5_000
"""Questions of the client that waits for each answer."""
CHANGES = 500


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


def serve(told: Connection) -> None:
    """Says the ports of the echo and of cluster DNS and the zone's memory, without the objects; then,
    whenever asked, the seconds of processor time that it has taken."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        objects = everything()
        before = memory()
        zone = filled(objects)
        for number in range(SERVICES):
            zone.find(encode(f"s{number}.default.svc.cluster.local"), A)
        sockets, floor = Sockets(HOST, 0), Sockets(HOST, 0)
        loop.add_reader(floor.udp, echo, floor.udp)
        told.send((floor.port, sockets.port, memory() - before))

        def asked() -> None:
            told.recv()
            told.send(time.process_time())

        loop.add_reader(told.fileno(), asked)
        await Server(Responder(zone), lambda asked, client, reply: None).run(sockets)

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


def waits(port: int) -> list[float]:
    """Milliseconds for each of one client's questions."""
    samples = []
    packet = question(7)
    with client(port) as sock:
        for _ in range(LONE):
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
            Measurement("change → answer", "ms", changes(), goal="≤ 2 ms"),
            Measurement("memory of 5,000 services, 20,000 endpoints", "MB", [size], goal="≤ 8 MB"),
        ],
    )


if __name__ == "__main__":
    main()
