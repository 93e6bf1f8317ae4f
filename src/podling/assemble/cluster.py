"""API server, scheduler, controllers and a node in one process: from settled options to the last pod stopped.

It ends in the reverse order of its start: pods are stopped while the API server still takes the kubelet's
status, then the API server and the storage end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from podling.apiserver.store.expiry import expire_events
from podling.assemble import process
from podling.assemble.control_plane import (
    KUBELET_CLIENT,
    Plane,
    ServerSettings,
    control_plane,
    server_settings,
)
from podling.assemble.controllers import CONTROLLERS, SCHEDULER, Signing, read_authority, run_all
from podling.assemble.kubeconfigs import write_admin
from podling.assemble.node import Neighbour, NodeSettings, RunningNode
from podling.assemble.process import Report
from podling.assemble.settle import KUBELET_PORT, LOOPBACK
from podling.assemble.up import Settled
from podling.client.informer import until
from podling.controllers.namespaces import DEFAULT as DEFAULT_ACCOUNT
from podling.controllers.system import NAME as API_SERVICE
from podling.controllers.system import NAMESPACE as API_NAMESPACE
from podling.cri.containerd.containerd import Containerd
from podling.kubelet.server.server import Peer
from podling.machine.pki import Authority, KeyPair
from podling.machine.start import listener, machine_address, writing
from podling.model.rules.status import is_condition_true
from podling.model.time import Clock, SystemClock
from podling.model.types.core import ServiceAccount
from podling.model.types.node import Node
from podling.model.types.rbac import MASTERS
from podling.model.types.service import Service
from podling.storage.compactor import compact_forever


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
    options, port, address = settled.options, settled.port, machine_address()
    instance, name = options.instance, options.node.name
    with writing(instance.data_dir):
        authority = Authority(instance.pki_dir, clock.now())
        server = server_settings(
            instance, port, address, settled.cidr, authority, options.node.gates, options.audit
        )
        node = NodeSettings(
            instance=instance,
            options=options.node,
            ip=address,
            listener=listener(address, KUBELET_PORT, 0),
            subnet=settled.subnet,
            serving=authority.server(
                "kubelet", f"system:node:{name}", [name, address, "localhost", LOOPBACK]
            ),
            client_ca=server.ca,
            api_server=(server.address, server.port),
        )
        write_admin(instance, port, authority)
    async with control_plane(replace(server, kubelet_ca=server.ca), clock) as plane:
        await _live(server, authority.ca, node, clock, plane, starting, ready, told_to_stop, report)


async def _live(
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
    controllers_and_scheduler = run_all(
        plane.client(CONTROLLERS),
        plane.client(SCHEDULER),
        server.ca.read_text(),
        read_authority(Signing(authority)),
        server.address,
        server.port,
        server.cidr,
        clock,
        started=started,
        measure=plane.server.metrics.add,
    )

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

    async with asyncio.TaskGroup() as tasks:
        acting = [
            tasks.create_task(compact_forever(plane.storage)),
            tasks.create_task(expire_events(plane.storage, clock)),
            tasks.create_task(controllers_and_scheduler),
        ]
        containerd = await starting
        report(f"Starting node {settings.name}")
        client = plane.client(f"system:node:{settings.name}", "system:nodes")
        api_server = Neighbour(Peer(KUBELET_CLIENT, (MASTERS,)), plane.kubelets.join)
        node = RunningNode(settings, client, clock, containerd, api_server)
        acting.append(tasks.create_task(node.run()))
        acting.append(tasks.create_task(say_ready()))
        await told_to_stop.wait()
        plane.server.drain()
        for task in acting:
            task.cancel()
    report("Stopping pods")
    await node.stop_pods()
    await node.close()
