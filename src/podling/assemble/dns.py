"""Cluster DNS: in the process of everything, or alone with a kubeconfig."""

from __future__ import annotations

import os
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from pathlib import Path

import msgspec

from podling.assemble import alone
from podling.assemble.process import Report
from podling.assemble.settle import ElsewhereOptions
from podling.client.client import Client
from podling.client.informer import Informers
from podling.dns.dns import ClusterDNS
from podling.dns.forward import ForwardOptions, Upstream
from podling.dns.query import address_of, ask, candidates, shown
from podling.dns.server import PORT, Sockets, sockets_at
from podling.dns.service import Place
from podling.dns.wire import PTR, TYPES
from podling.dns.zone import DNS_NAMESPACE, DNS_SERVICE
from podling.machine.network import have_own_address
from podling.machine.start import StartError
from podling.model.rules.addresses import address_and_port, subnets
from podling.model.time import Clock, SystemClock
from podling.model.types.service import Service
from podling.process.metrics import TEXT_FORMAT, Exposition, Source
from podling.process.small_http import NOT_FOUND, TEXT, Answer

TENTH = 10
"""Which address of the services' range is that of cluster DNS, as kubeadm has it."""


class DNSOptions(msgspec.Struct, frozen=True):
    """The options of `podling dns`. With a `cluster_ip`, the service `kube-dns` gets it and leads here."""

    kubeconfig: Path
    address: str
    port: int
    domain: str
    cluster_ip: str
    resolv_conf: Path
    elsewhere: ElsewhereOptions
    metrics: tuple[str, int] | None
    """Where metrics and health are told; nowhere if None."""


def tenth_address(ranges: str) -> str:
    """Where pods ask, if services get their addresses from these subnets; "" if they are too small."""
    network = ip_network(subnets(ranges)[0])
    return str(network[TENTH]) if network.num_addresses > TENTH + 1 else ""


async def serve_names(
    client: Client,
    informers: Informers,
    clock: Clock,
    gateway: str,
    cluster_ip: str,
    node: str,
    resolv_conf: Path,
    elsewhere: ElsewhereOptions,
    measure: Callable[[Source], None],
    run_dir: Path,
    server: str = "",
) -> None:
    """At the `gateway` of this machine's pods, for those of all nodes; begin it before the informers start.
    `run_dir` is where the address is noted, `server` as in `Place`."""
    sockets = _listening(gateway, PORT, 0)
    # It comes with the first pod of this machine, but pods of other nodes ask before.
    await have_own_address(gateway, run_dir)
    place = Place(cluster_ip, gateway, sockets.port, node, server) if cluster_ip else None
    forward = forwarding(resolv_conf, elsewhere, (gateway, cluster_ip))
    await ClusterDNS(client, informers, sockets, clock, forward, place=place, measure=measure).run()


def forwarding(resolv_conf: Path, elsewhere: ElsewhereOptions, own: tuple[str, str]) -> ForwardOptions:
    return ForwardOptions(resolv_conf, elsewhere.servers, elsewhere.stubs, elsewhere.autopath, own)


def run(options: DNSOptions, report: Report) -> None:
    """Answer until told to stop. Raises StartError."""
    access = alone.read_access(options.kubeconfig)
    if options.cluster_ip and ip_address(options.address).is_loopback:
        raise StartError(f"no service can lead to {options.address}: give another --address")

    async def act(client: Client) -> None:
        sockets = _listening(options.address, options.port)
        place = None
        if options.cluster_ip:
            place = Place(options.cluster_ip, options.address, sockets.port)
        own = (options.address, options.cluster_ip)
        forward = forwarding(options.resolv_conf, options.elsewhere, own)
        informers, clock = Informers(client), SystemClock()
        exposition = Exposition(process=True)
        dns = ClusterDNS(
            client,
            informers,
            sockets,
            clock,
            forward,
            domain=options.domain,
            place=place,
            measure=exposition.add,
        )

        def answer(method: str, target: str) -> Answer:
            match target.partition("?")[0]:
                case "/metrics":
                    return Answer(200, TEXT_FORMAT, exposition.text())
                case "/ready" if not dns.zone.is_synced:
                    return Answer(503, TEXT, b"kubernetes")
                case "/health" | "/ready":
                    return Answer(200, TEXT, b"OK")
            return NOT_FOUND

        async with alone.served("cluster DNS", options.metrics, answer):
            report(f"Names of {access.server} at {options.address}, port {sockets.port}")
            await dns.run()

    alone.run(access, act)


async def query(client: Client, server: str, name: str, type_: str, namespace: str, domain: str) -> list[str]:
    """Lines on what cluster DNS, or a `server`, says of a name to a pod of a namespace. Raises StatusError,
    OSError, ValueError for what is no name."""
    if not server:
        server = (await client.get(Service, DNS_SERVICE, DNS_NAMESPACE)).spec.cluster_ip
    number = {text: number for number, text in TYPES.items()}[type_]
    names = candidates(name, namespace, domain)
    if (reverse := address_of(name)) is not None:
        number, names = PTR, [reverse]
    return [f"asking {server}", *shown(await ask(Upstream(*address_and_port(server, PORT)), names, number))]


def _listening(address: str, *ports: int) -> Sockets:
    """Raises StartError."""
    try:
        return sockets_at(address, *ports)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise StartError(f"cluster DNS cannot listen on {address}, port {ports[-1]}: {why}") from error
