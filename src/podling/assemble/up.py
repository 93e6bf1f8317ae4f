"""Everything in one process: settle what the options leave open, import the parts, run until told to stop.

    settle ─┬─▶ containerd starts ────────────────────▶ the node runs ─▶ told to stop ─▶ containerd ends
            └─▶ the parts are imported ─▶ API server ──▲

`run` ends what it has started, however it ends, unless it is killed. The next start takes over what a killed
one left, or `down.py` ends it. This module imports little, because a start waits for its imports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from podling.assemble import process
from podling.assemble.node_options import NodeOptions, start_runtime
from podling.assemble.process import Report
from podling.assemble.settle import (
    AdmissionOptions,
    AuditOptions,
    AuthenticationOptions,
    AuthorizationOptions,
    ElsewhereOptions,
    EncryptionOptions,
    EtcdOptions,
    InFlightOptions,
    ServingOptions,
    check_port,
    choose,
    choose_range,
    port_before,
)
from podling.assemble.shared import kept
from podling.cri.containerd.containerd import Containerd
from podling.machine import node_runtime
from podling.machine.instance import DEFAULT_PORT, Instance
from podling.machine.network import has_ipv6
from podling.machine.start import StartError, check_machine, hold, writing
from podling.model.rules.pod_subnets import pod_subnets


class UpOptions(msgspec.Struct, frozen=True):
    """The options of `podling up`. `port` None is the port of the last start, or the default; an empty
    `service_range` is the range of before, or one that is free here."""

    instance: Instance
    port: int | None = None
    address: str = ""
    """Where pods and other nodes reach the API server and the node; the machine's own when empty."""
    service_range: str = ""
    cluster_cidr: str = ""
    """Of which nodes that join get the subnets of their pods; podling's own when empty."""
    service_proxy: bool = True
    """Whether it programs the addresses of services: not where kube-proxy does."""
    service_lb: bool = True
    """Whether services of type LoadBalancer get the nodes' addresses: not where another gives them theirs."""
    workloads: bool = True
    """Whether Deployments and their like get pods: not where kube-controller-manager makes them."""
    directory_storage: bool = True
    """Whether there is a class of storage that makes volumes of directories."""
    elsewhere: ElsewhereOptions = ElsewhereOptions()
    node: NodeOptions = msgspec.field(default_factory=NodeOptions)
    authorization: AuthorizationOptions = AuthorizationOptions()
    audit: AuditOptions = AuditOptions()
    authentication: AuthenticationOptions = AuthenticationOptions()
    in_flight: InFlightOptions = InFlightOptions()
    admission: AdmissionOptions = AdmissionOptions()
    encryption: EncryptionOptions = EncryptionOptions()
    showing: ServingOptions = ServingOptions()
    etcd: EtcdOptions = EtcdOptions()


class Settled(msgspec.Struct, frozen=True):
    """`options` and what they leave open: the API server's port, and the subnets of pods and of services."""

    options: UpOptions
    port: int
    subnets: str
    cidr: str


Live = Callable[
    [Settled, asyncio.Task[Containerd | None], Callable[[], None], asyncio.Event, Report], Awaitable[None]
]


def as_before(options: UpOptions) -> tuple[UpOptions, str]:
    """What is not given is as at the last start if the cluster is shared with other API servers; and the
    pods' subnet, which the other machines know and which must be free then, else empty. Raises StartError."""
    instance = options.instance
    before = kept(instance)
    if before is None:
        return options, ""
    if options.encryption.keys is not None:
        raise StartError("--encryption-provider-config cannot be used with objects in etcd")
    node = replace(options.node, node_name=options.node.node_name or before.node)
    chosen = instance.choices()
    return replace(
        options,
        node=node,
        address=options.address or before.address,
        cluster_cidr=options.cluster_cidr or before.cluster_cidr,
        etcd=options.etcd if options.etcd.servers else before.etcd,
    ), chosen.subnet if chosen else ""


def run(
    given: UpOptions,
    report: Report,
    ready: Callable[[], None],
    join: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run podling until it is told to stop by SIGTERM or SIGINT; `ready` is called once pods can run. `join`
    comes first, if the machine is to become part of a cluster.

    Raises StartError.
    """
    instance = given.instance

    def imported() -> Live:
        """Import all the parts, which is two thirds of a start's time. containerd starts meanwhile."""
        from podling.process.tls import import_aiohttp

        import_aiohttp()
        from podling.assemble.cluster import live

        return live

    async def main(told_to_stop: asyncio.Event) -> None:
        check_machine()
        with hold(instance):
            with writing(instance.data_dir):
                if join is not None:
                    await join()
                instance.have_data_dir()
                options, subnet = as_before(given)
                port = options.port or port_before(instance) or DEFAULT_PORT
                check_port(port)
                cidr = choose_range(instance, port, options.service_range)
                own = choose(instance, port, subnet).subnet
                settled = Settled(options, port, pod_subnets(own, cidr) if has_ipv6() else own, cidr)
            try:
                async with asyncio.TaskGroup() as tasks:
                    starting = tasks.create_task(
                        start_runtime(instance, settled.subnets, options.node, report)
                    )
                    live = await asyncio.to_thread(imported)
                    await live(settled, starting, ready, told_to_stop, report)
            except* StartError:
                await node_runtime.end(instance)
                raise
            if not options.node.cri_endpoint:
                await node_runtime.end(instance)

    process.run(main)
