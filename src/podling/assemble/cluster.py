"""API server, scheduler, controllers and a node in one process: from settled options to the last pod stopped.

It ends in the reverse order of its start: pods are stopped while the API server still takes the kubelet's
status, then the API server and the storage end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from podling.apiserver.authz.authorizers import MASTERS
from podling.apiserver.store.expiry import expire_events
from podling.assemble.control_plane import (
    KUBELET_CLIENT,
    LOOPBACK,
    Plane,
    ServerSettings,
    control_plane,
    server_settings,
    write_admin,
)
from podling.assemble.controllers import CONTROLLERS, SCHEDULER, run_all
from podling.assemble.node import Neighbour, NodeSettings, RunningNode
from podling.assemble.process import Report
from podling.assemble.settle import KUBELET_PORT
from podling.assemble.up import Settled
from podling.client.client import Client
from podling.client.informer import until
from podling.controllers.namespaces import DEFAULT as DEFAULT_ACCOUNT
from podling.controllers.system import NAME as API_SERVICE
from podling.controllers.system import NAMESPACE as API_NAMESPACE
from podling.cri.containerd.containerd import Containerd
from podling.kubelet.kubelet import Kubelet
from podling.kubelet.server.server import Peer
from podling.machine.pki import Authority
from podling.machine.start import listener, machine_address, writing
from podling.model.rules.status import is_condition_true
from podling.model.time import Clock, SystemClock
from podling.model.types.core import ServiceAccount
from podling.model.types.node import Node
from podling.model.types.service import Service
from podling.storage.compactor import compact_forever


class _Prepared(msgspec.Struct, frozen=True):
    server: ServerSettings
    node: NodeSettings


async def live(
    settled: Settled,
    starting: asyncio.Task[Containerd | None],
    ready: Callable[[], None],
    told_to_stop: asyncio.Event,
    report: Report,
) -> None:
    """Run until `told_to_stop`. `ready` is called when pods can run; `starting` is the containerd being
    started. Raises StartError."""
    clock = SystemClock()
    with writing(settled.options.instance.data_dir):
        prepared = _prepare(settled, clock.now())
    async with control_plane(prepared.server, clock) as plane:
        await _live(prepared, clock, plane, starting, ready, told_to_stop, report)


def _prepare(settled: Settled, now: datetime) -> _Prepared:
    options, port, address = settled.options, settled.port, machine_address()
    instance, name = options.instance, options.node.name
    authority = Authority(instance.pki_dir, now)
    server = server_settings(instance, port, address, authority, options.node.gates, options.audit)
    node = NodeSettings(
        instance=instance,
        options=options.node,
        ip=address,
        listener=listener(address, KUBELET_PORT, 0),
        subnet=settled.subnet,
        serving=authority.server("kubelet", f"system:node:{name}", [name, address, "localhost", LOOPBACK]),
        client_ca=server.ca,
        api_server=(server.address, server.port),
    )
    write_admin(instance, port, authority)
    return _Prepared(replace(server, kubelet_ca=server.ca), node)


async def _live(
    prepared: _Prepared,
    clock: Clock,
    plane: Plane,
    starting: asyncio.Task[Containerd | None],
    ready: Callable[[], None],
    told_to_stop: asyncio.Event,
    report: Report,
) -> None:
    """Run everything that acts on objects, until told to stop."""
    server, name = prepared.server, prepared.node.name
    report(f"API server on https://{LOOPBACK}:{server.port}")
    started = asyncio.Event()

    def is_ready() -> None:
        ready()
        started.set()

    async with asyncio.TaskGroup() as tasks:
        acting = [
            tasks.create_task(compact_forever(plane.storage)),
            tasks.create_task(expire_events(plane.storage, clock)),
            tasks.create_task(_act(server, plane, clock, started)),
        ]
        containerd = await starting
        report(f"Starting node {name}")
        client = plane.client(f"system:node:{name}", "system:nodes")
        api_server = Neighbour(Peer(KUBELET_CLIENT, (MASTERS,)), plane.kubelets.join)
        node = RunningNode(prepared.node, client, clock, containerd, api_server)
        acting.append(tasks.create_task(node.run()))
        acting.append(tasks.create_task(_say_ready(plane.own_client(), name, node.kubelet, is_ready)))
        await told_to_stop.wait()
        plane.server.drain()
        for task in acting:
            task.cancel()
    report("Stopping pods")
    await node.stop_pods()
    await node.close()


async def _act(server: ServerSettings, plane: Plane, clock: Clock, started: asyncio.Event) -> None:
    await run_all(
        plane.client(CONTROLLERS),
        plane.client(SCHEDULER),
        server.ca.read_text(),
        server.address,
        server.port,
        clock,
        started=started,
        measure=plane.server.metrics.add,
    )


async def _say_ready(client: Client, name: str, kubelet: Kubelet, ready: Callable[[], None]) -> None:
    """Call `ready` once the node is Ready, a pod can be created in the default namespace, and the service
    `kubernetes` leads to the API server."""
    # The status of a node that was here before is only true once this kubelet has looked.
    await kubelet.wait_ready()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(until(client, Node, "", name, _is_ready))
        tasks.create_task(until(client, ServiceAccount, API_NAMESPACE, DEFAULT_ACCOUNT))
        tasks.create_task(until(client, Service, API_NAMESPACE, API_SERVICE))
    ready()


def _is_ready(node: Node) -> bool:
    return is_condition_true(node.status.conditions, "Ready")
