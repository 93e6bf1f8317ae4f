"""A node of a cluster that is elsewhere: kubelet, runtime and network in one process, as in `podling up`,
without a control plane.

    join, the first time ─▶ a way to all API servers ─▶ the Node and its subnet ─▶ kubelet │ network

Told to stop, it leaves its pods and its runtime running, and the next start takes them over; `podling down`
ends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from podling.assemble import process
from podling.assemble.alone import read_access
from podling.assemble.discovery import Joining
from podling.assemble.join import check_time, identify, join, known, new_member
from podling.assemble.kubelet import KubeletOptions, certify, keep_certified, serve, settle
from podling.assemble.network import ProxyOptions, run_proxy
from podling.assemble.node_certificates import (
    RotatedLogin,
    Rotation,
    client_certificate,
    joined_certificate,
    node_of,
)
from podling.assemble.node_options import NodeOptions
from podling.assemble.policies import policies
from podling.assemble.process import Report
from podling.assemble.routes import NodeRoutes
from podling.assemble.settle import KUBELET_PORT, port_before
from podling.client.balance import Balancer, Place
from podling.client.client import Client
from podling.client.informer import Informers, until
from podling.client.kubeconfig import Access
from podling.kubelet.config import KubeletConfig
from podling.kubelet.worker.context import admit_all
from podling.machine.instance import Instance
from podling.machine.network import has_ipv6
from podling.machine.pki import write_whole
from podling.machine.start import (
    StartError,
    check_machine,
    hold,
    listener,
    machine_address,
    machine_address6,
    writing,
)
from podling.model.rules.status import is_condition_true
from podling.model.time import SystemClock
from podling.model.types.discovery import EndpointSlice
from podling.model.types.node import Node, Taint

SERVICE_LABEL, API_SERVICE, API_NAMESPACE = "kubernetes.io/service-name", "kubernetes", "default"
SERVER_NAME = "kubernetes"
"""What the certificate of each API server is for, at whichever address it is."""
SERVERS_FILE = "servers.json"


class WorkerOptions(msgspec.Struct, frozen=True):
    """The options of `podling join`. `joining` is None for a machine that has joined."""

    instance: Instance
    joining: Joining | None = None
    node: NodeOptions = msgspec.field(default_factory=NodeOptions)
    node_ip: str = ""
    """This machine's own when empty."""
    port: int | None = None
    """Of the kubelet's server."""
    taints: Sequence[Taint] = ()
    """What the Node has when it is registered."""


def run(options: WorkerOptions, report: Report, ready: Callable[[], None]) -> None:
    """Run the node until told to stop; `ready` is called once it is Ready. Raises StartError."""

    async def main(told_to_stop: asyncio.Event) -> None:
        check_machine()
        if ":" in options.node_ip and not options.node.cri_endpoint:
            raise StartError(
                f"--node-ip {options.node_ip}: the pods of other nodes are reached over IPv4 alone; give an "
                "address of IPv4"
            )
        clock, instance = SystemClock(), options.instance
        with hold(instance):
            with writing(instance.data_dir):
                instance.have_data_dir()
                await _joined(options, report)
            name = name_of(options)
            access = read_access(instance.joined_kubeconfig)
            check_time(client_certificate(instance.pki_dir, name), clock.now())
            server = urlsplit(access.server)
            first = server.hostname or "", server.port or 443
            balancer = Balancer(api_servers(instance, first))
            async with balancer.listening() as (host, port):
                near = replace(
                    access,
                    server=f"https://{host}:{port}",
                    wire=access.wire._replace(server_name=SERVER_NAME, proxy=None),
                )
                client = Client(near.transport())
                beside = Client(looking_after(near, instance, name).transport())
                try:
                    async with asyncio.TaskGroup() as tasks:
                        acting = tasks.create_task(
                            _live(options, name, access, balancer, client, beside, report, ready)
                        )
                        await told_to_stop.wait()
                        acting.cancel()
                finally:
                    await client.close()
                    await beside.close()

    process.run(main)


async def _joined(options: WorkerOptions, report: Report) -> None:
    """Join, unless the machine has joined. Raises StartError."""
    instance, joining, name = options.instance, options.joining, options.node.name
    if instance.joined_kubeconfig.exists():
        return
    if instance.shared_file.exists():
        raise StartError("this machine is an API server of its cluster: `podling up` starts it")
    if joining is None:
        raise StartError(
            "this machine has joined no cluster: give HOST:PORT, --token and --ca-hash, as "
            "`podling token create --print-join-command` prints them there"
        )
    report(f"Joining the cluster at {joining.server} as {name}")
    await join(instance, joining, name, SystemClock().now())


def looking_after(access: Access, instance: Instance, node: str) -> Access:
    """By the certificate of who looks after the network of `node`; by the node's own as long as there is
    none."""
    own = joined_certificate(instance.pki_dir, node)
    return replace(access, login=RotatedLogin(own, access.trust, access.login, SystemClock()))


def name_of(options: WorkerOptions) -> str:
    """Which node the machine has become. Raises StartError if it is to be another."""
    name = node_of(options.instance.pki_dir) or options.node.name
    if options.node.node_name not in ("", name):
        raise StartError(f"this machine has joined as {name}: `podling leave` first for another --node-name")
    return name


def api_servers(instance: Instance, first: Place) -> Sequence[Place]:
    """Where the API servers were when they were last heard of, and where the first is."""
    try:
        kept = msgspec.json.decode((instance.data_dir / SERVERS_FILE).read_bytes(), type=list[Place])
    except (OSError, ValueError):
        kept = []
    return [*kept, *([] if first in kept else [first])]


async def _live(
    options: WorkerOptions,
    name: str,
    access: Access,
    balancer: Balancer,
    client: Client,
    beside: Client,
    report: Report,
    ready: Callable[[], None],
) -> None:
    """`client` is the kubelet's, `beside` that of who looks after the network."""
    clock, instance = SystemClock(), options.instance
    ip = options.node_ip or machine_address()
    if ip_address(ip).is_loopback:
        raise StartError("this machine has no address that others reach: give one with --node-ip")
    wanted = (options.port,) if options.port else (port_before(instance) or KUBELET_PORT, 0)
    given = options.node.settings
    config = KubeletConfig(name, instance.kubelet_dir, instance.pod_logs_dir, ip, **given)
    with listener(ip, *wanted) as listening:
        with writing(instance.data_dir):
            identity = joined_certificate(instance.pki_dir, name)
            await identify(client, identity, clock.now())
            cluster = await known(client, beside, instance, new_member(config, options.taints))
            subnets = cluster.subnets if has_ipv6() else cluster.subnets.partition(",")[0]
            addresses = ",".join(filter(None, (ip, machine_address6() if ":" in subnets else "")))
            resolvers: Mapping[str, Any] = {"cluster_dns": (cluster.dns,)} if cluster.dns else {}
            node = replace(options.node, node_name=name, settings={**resolvers, **given})
            chosen = KubeletOptions(
                instance,
                instance.joined_kubeconfig,
                node,
                addresses,
                options.port,
                subnets,
                rotates=True,
                rotates_server=True,
            )
            certified = certify(chosen, ip, clock)
            settings = settle(chosen, certified.serving, access, ip, listening)
        informers = Informers(beside)
        informers.of(EndpointSlice).subscribe(lambda old, new: follow_servers(instance, balancer, new))
        is_own = not node.cri_endpoint
        routes = NodeRoutes(client, informers, instance, name, ip, subnets) if is_own else None
        enforced = policies(beside, informers, instance, name) if is_own else None
        proxied = ProxyOptions(instance, name, cluster.services, subnets if is_own else "", ip)

        async def follow() -> None:
            async with asyncio.TaskGroup() as following:
                await informers.start(following)

        async def say_ready() -> None:
            await until(
                client, Node, "", name, lambda found: is_condition_true(found.status.conditions, "Ready")
            )
            report(f"Node {name} of {access.server} is Ready")
            ready()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Rotation(client, identity, clock).run())
            tasks.create_task(run_proxy(beside, informers, proxied, lambda source: None))
            if routes is not None and enforced is not None:
                tasks.create_task(routes.run())
                tasks.create_task(enforced.run())
            tasks.create_task(follow())
            tasks.create_task(keep_certified(chosen, ip, client, certified.due, clock))
            admit = enforced.admit if enforced is not None else admit_all
            begun = asyncio.Event()
            tasks.create_task(serve(settings, client, clock, report, begun.set, admit))
            await begun.wait()
            await say_ready()


def follow_servers(instance: Instance, balancer: Balancer, found: EndpointSlice | None) -> None:
    """Of where API servers are."""
    if found is None or found.metadata.namespace != API_NAMESPACE:
        return
    if found.metadata.labels.get(SERVICE_LABEL) != API_SERVICE:
        return
    places = [
        (address, port.port)
        for endpoint in found.endpoints
        for address in endpoint.addresses
        for port in found.ports
        if port.port
    ]
    if places and {*places} != {*balancer.servers}:
        standing = [one for one in balancer.servers if one in places]
        balancer.servers = [*standing, *(one for one in places if one not in standing)]
        write_whole(instance.data_dir / SERVERS_FILE, msgspec.json.encode(balancer.servers), 0o644)
