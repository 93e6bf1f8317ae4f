"""API server, scheduler, controllers and a node in one process: from settled options to the last pod stopped.

It ends in the reverse order of its start: pods are stopped while the API server still takes the kubelet's
status, then the API server and the storage end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from podling.apiserver.store.expiry import expire_events
from podling.assemble import process
from podling.assemble.accounts import in_process
from podling.assemble.control_plane import (
    KUBELET_CLIENT,
    Plane,
    ServerSettings,
    api_server_hosts,
    believed,
    control_plane,
    server_settings,
)
from podling.assemble.controllers import CLUSTER_CIDR, CONTROLLERS, Signing, read_authority, run_all
from podling.assemble.dns import serve_names, tenth_address
from podling.assemble.kubeconfigs import write_admin
from podling.assemble.network import ProxyOptions, run_proxy
from podling.assemble.node import Neighbour, NodeSettings, RunningNode
from podling.assemble.policies import policies
from podling.assemble.process import Report
from podling.assemble.routes import NodeRoutes
from podling.assemble.settle import KUBELET_PORT, LOOPBACK
from podling.assemble.shared import keep, shared
from podling.assemble.storage import ACCOUNT as STORAGE_ACCOUNT
from podling.assemble.storage import provide_directories
from podling.assemble.up import Settled
from podling.client.informer import Informers, until
from podling.controllers.namespaces import DEFAULT as DEFAULT_ACCOUNT
from podling.cri.containerd.containerd import Containerd
from podling.kubelet.server.server import Peer
from podling.kubelet.worker.context import admit_all
from podling.machine.network import gateway, have_own_address
from podling.machine.pki import Authority, KeyPair, renew_forever
from podling.machine.start import is_taken, listener, machine_address, machine_address6, writing
from podling.model.rules.addresses import first_address
from podling.model.rules.service_endpoints import API_NAMESPACE, API_SERVICE
from podling.model.rules.status import is_condition_true
from podling.model.time import Clock, SystemClock
from podling.model.types.core import ServiceAccount
from podling.model.types.node import Node
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Service
from podling.storage.compactor import compact_forever

PROXY = "system:kube-proxy"
"""The user of the service proxy."""


class Certified(NamedTuple):
    """With whose certificates the server, and the kubelet's, are."""

    authority: Authority
    server: ServerSettings
    kubelet: KeyPair


async def live(
    settled: Settled,
    starting: asyncio.Task[Containerd | None],
    ready: Callable[[], None],
    told_to_stop: asyncio.Event,
    report: Report,
) -> None:
    """Run until `told_to_stop`. `ready` is called once the node is Ready, a pod can be created in the default
    namespace, and the service `kubernetes` leads to the API server; `starting` is the containerd being
    started. Raises StartError."""
    clock = SystemClock()
    options, port = settled.options, settled.port
    address, instance, name = options.address or machine_address(), options.instance, options.node.name
    if address == LOOPBACK != options.address and not options.node.cri_endpoint:
        # Nobody else reaches this machine, but its pods do, at their gateway.
        address = gateway(settled.subnets)
        with writing(instance.run_dir):
            await have_own_address(address, instance.run_dir)
    host_names = [name, address, "localhost", LOOPBACK]

    def certified() -> Certified:
        authority = Authority(instance.pki_dir, clock.now())
        server = server_settings(
            instance,
            port,
            address,
            settled.cidr,
            authority,
            options.node.gates,
            options.audit,
        )
        serving = authority.server("kubelet", f"system:node:{name}", host_names)
        write_admin(instance, port, authority)
        return Certified(authority, server, serving)

    # Where services lead somewhere, whoever the service of names is given to answers.
    resolver = tenth_address(settled.cidr) if options.service_proxy else ""
    with writing(instance.data_dir):
        authority, server, serving = certified()
        node = NodeSettings(
            instance=instance,
            options=options.node,
            ip=address,
            listener=listener(address, KUBELET_PORT, 0),
            subnets=settled.subnets,
            serving=serving,
            client_ca=server.ca,
            api_server=None if options.service_proxy else (server.address, server.port),
            resolvers=(resolver or gateway(settled.subnets),),
            ip6=machine_address6() if ":" in settled.subnets else "",
        )
    server = replace(
        server,
        kubelet_ca=server.ca,
        is_whole=True,
        # On another runtime the network is its own, and its plugin's are the policies.
        enforces_policies=not options.node.cri_endpoint,
        authentication=options.authentication,
        authorization=options.authorization,
        in_flight=options.in_flight,
        admission=options.admission,
        encryption=options.encryption,
        showing=options.showing,
        etcd=options.etcd,
    )
    async with control_plane(server, clock) as plane, asyncio.TaskGroup() as tasks:
        if plane.leases is not None:
            keep(instance, shared(options.etcd, port, settled.cidr, options.cluster_cidr, name, address))
        renewing = tasks.create_task(
            renew_forever(authority.due, lambda: certified().authority.due, clock),
        )
        await _live(settled, server, authority.ca, node, clock, plane, starting, ready, told_to_stop, report)
        renewing.cancel()


async def _live(
    settled: Settled,
    server: ServerSettings,
    authority: KeyPair,
    settings: NodeSettings,
    clock: Clock,
    plane: Plane,
    starting: asyncio.Task[Containerd | None],
    ready: Callable[[], None],
    told_to_stop: asyncio.Event,
    report: Report,
) -> None:
    """Run everything that acts on objects, until told to stop."""
    report(f"API server on https://{LOOPBACK}:{server.port}")
    started = asyncio.Event()
    informers = Informers(plane.client(CONTROLLERS))
    controllers_and_scheduler = run_all(
        plane.client,
        informers,
        server.ca.read_text(),
        read_authority(Signing(authority)),
        plane.servers,
        server.port,
        server.cidr,
        clock,
        url=f"https://{server.address}:{server.port}",
        started=started,
        fault_of=plane.fault_of,
        believed=believed(server),
        measure=plane.server.metrics.add,
        taken=is_taken if settled.options.service_lb else None,
        workloads=settled.options.workloads,
        cluster_cidr=settled.options.cluster_cidr or CLUSTER_CIDR,
        server_names=api_server_hosts(server.address, first_address(server.cidr)),
        elects=plane.leases is not None,
    )

    as_node = plane.client(f"system:node:{settings.name}", "system:nodes")

    async def say_ready() -> None:
        # The status of a node that was here before is only true once this kubelet has looked.
        await node.kubelet.wait_ready()
        own = plane.own_client()
        async with asyncio.TaskGroup() as waits:
            waits.create_task(
                until(own, Node, "", settings.name, lambda n: is_condition_true(n.status.conditions, "Ready"))
            )
            waits.create_task(until(own, ServiceAccount, API_NAMESPACE, DEFAULT_ACCOUNT))
            waits.create_task(until(own, Service, API_NAMESPACE, API_SERVICE))
        ready()
        process.started()
        started.set()

    names = serve_names(
        plane.own_client(),
        informers,
        clock,
        gateway(settings.subnets),
        tenth_address(server.cidr),
        settings.name,
        settings.kubelet_config().resolv_conf,
        settled.options.elsewhere,
        plane.server.metrics.add,
        settings.instance.run_dir,
        server.address if plane.leases is not None else "",
    )
    # The subnets are of the pods that podling's own runtime has.
    pods = "" if settings.options.cri_endpoint else settings.subnets
    proxied = ProxyOptions(settings.instance, settings.name, settled.cidr, pods, settings.ip)
    proxy = (
        (run_proxy(plane.client(PROXY), informers, proxied, plane.server.metrics.add),)
        if settled.options.service_proxy
        else ()
    )
    enforced = (
        policies(plane.client(PROXY), informers, settings.instance, settings.name)
        if server.enforces_policies
        else None
    )
    # As with policies, another runtime's network has its own.
    routes = (
        ()
        if settings.options.cri_endpoint
        else (
            NodeRoutes(
                as_node, informers, settings.instance, settings.name, settings.ip, settings.subnets
            ).run(),
        )
    )
    if enforced:
        plane.server.metrics.add(enforced.metrics)

    stored = (
        (
            provide_directories(
                in_process(plane.client, STORAGE_ACCOUNT),
                informers,
                clock,
                settings.instance.volumes_dir,
                settings.name,
            ),
        )
        if settled.options.directory_storage
        else ()
    )

    async with asyncio.TaskGroup() as tasks:
        # In this order: whoever starts the informers comes after those who listen to them.
        acting = [
            tasks.create_task(one)
            for one in (
                *proxy,
                *routes,
                *((enforced.run(),) if enforced else ()),
                names,
                controllers_and_scheduler,
                *stored,
                compact_forever(plane.storage),
                expire_events(plane.storage, clock),
            )
        ]
        containerd = await starting
        report(f"Starting node {settings.name}")
        api_server = Neighbour(Peer(KUBELET_CLIENT, (MASTERS,)), plane.kubelets.join)
        admit = enforced.admit if enforced else admit_all
        node = RunningNode(settings, as_node, clock, containerd, api_server, admit)
        acting.append(tasks.create_task(node.run()))
        acting.append(tasks.create_task(say_ready()))
        staying = tasks.create_task(plane.stay_listed())
        await told_to_stop.wait()
        staying.cancel()
        await plane.leave()
        for task in acting:
            task.cancel()
    report("Stopping pods")
    await node.stop_pods()
    await node.close()
