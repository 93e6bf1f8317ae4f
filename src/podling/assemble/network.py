"""The service proxy of a node: in the process of the other parts, or alone with a kubeconfig.

Told to stop, it leaves the tables as they are, as kube-proxy does, and the next one replaces them, each in
one transaction. `podling down` removes them.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable
from pathlib import Path

import msgspec

from podling.assemble import alone
from podling.assemble.policies import enforce
from podling.assemble.process import Report
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.machine.instance import Instance
from podling.machine.network import gateway, have_own_address, note_services, set_up_service_route
from podling.machine.start import is_taken, machine_address, writing
from podling.model.time import SystemClock
from podling.network.nft import Nft
from podling.network.proxy import ServiceProxy
from podling.network.table import IPV4, IPV6, Shape, turn_of
from podling.process.metrics import TEXT_FORMAT, Exposition, Source
from podling.process.small_http import NOT_FOUND, TEXT, Answer

COMPONENT = "kube-proxy"
"""Whose events the proxy's are."""


class ProxyOptions(msgspec.Struct, frozen=True):
    """`services` and `pods` are the subnets of the services' addresses and of this node's pods: of IPv4 and
    IPv6, separated by commas; empty if they are not known. `address` is what this node's processes show to
    services; the machine's if empty."""

    instance: Instance
    node: str
    services: str = ""
    pods: str = ""
    address: str = ""


def shapes(options: ProxyOptions) -> list[Shape]:
    """The tables: of IPv4, and of IPv6 where it is on and services may have such addresses. Raises
    ValueError."""
    subnets: dict[tuple[str, int], str] = {
        (name, ipaddress.ip_network(one).version): one
        for name, listed in (("services", options.services), ("pods", options.pods))
        for one in filter(None, listed.split(","))
    }
    table = options.instance.services_table
    may_have_both = not options.services or ("services", 6) in subnets
    both = may_have_both and Path("/proc/sys/net/ipv6").exists()
    families = ((4, IPV4), (6, IPV6)) if both else ((4, IPV4),)
    return [
        Shape(family, table, subnets.get(("pods", version), ""), subnets.get(("services", version), ""))
        for version, family in families
    ]


async def run_proxy(
    client: Client,
    informers: Informers,
    options: ProxyOptions,
    measure: Callable[[Source], None],
    healthz: tuple[str, int] | None = None,
) -> None:
    """Lead to the pods of services for ever, with its health at an address and port, if any. Begin it before
    the informers start. Raises StartError."""
    nft, clock = Nft(), SystemClock()
    # The node ports that other podlings have are theirs (docs/decisions/126).
    turn = turn_of(options.instance.services_table, await nft.run(lambda run: run("list chains\n")))
    tables = [msgspec.structs.replace(one, turn=turn) for one in shapes(options)]
    events = EventRecorder(client, clock, COMPONENT, options.node)
    address = own = options.address or machine_address()
    proxy = ServiceProxy(informers, nft, tables, options.node, address, clock, events, is_taken)
    measure(proxy.metrics)
    ranges = [shape.services for shape in tables if shape.services]
    if ipaddress.ip_address(address).is_loopback and tables[0].pods:
        # Nobody answers to the address of loopback: the machine is the pods' gateway instead.
        own = gateway(tables[0].pods)
    with writing(options.instance.run_dir):
        note_services(options.instance.run_dir, ranges)
    try:
        async with (
            alone.served("the service proxy", healthz, proxy.paths.answer),
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(proxy.run())
            tasks.create_task(events.run())
            if own != address:
                await have_own_address(own, options.instance.run_dir)
            for services in ranges:
                await set_up_service_route(services, own)
    finally:
        nft.close()


def run(
    options: ProxyOptions,
    file: Path,
    report: Report,
    healthz: tuple[str, int] | None = None,
    metrics: tuple[str, int] | None = None,
    *,
    enforces_policies: bool = False,
) -> None:
    """Run until told to stop, with health and metrics at addresses and ports, if any. Raises StartError."""
    access = alone.read_access(file)
    report(f"Leading to the pods of services of {access.server}")
    exposition = Exposition(process=True)

    def answer(method: str, target: str) -> Answer:
        match target.partition("?")[0]:
            case "/healthz":
                return Answer(200, TEXT, b"ok")
            case "/metrics":
                return Answer(200, TEXT_FORMAT, exposition.text())
            case "/proxyMode":
                return Answer(200, TEXT, b"nftables")
        return NOT_FOUND

    async def act(client: Client) -> None:
        async with alone.served("the service proxy", metrics, answer), asyncio.TaskGroup() as tasks:
            tasks.create_task(run_proxy(client, Informers(client), options, exposition.add, healthz))
            if enforces_policies:
                # With informers of its own: without them services are led to all the same.
                tasks.create_task(enforce(client, options.instance, options.node, exposition.add))

    alone.run(access, act)
