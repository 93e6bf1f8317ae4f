"""A node: its settings and serving certificate, its runtime, the kubelet, and the kubelet's server.

It knows the API server only by a client, and an API server of the same process also as a `Neighbour`, which
is told when the kubelet's server listens.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path

import msgspec

from podling.assemble.node_options import NodeOptions
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.cri.containerd.containerd import Containerd
from podling.cri.grpc.client import GrpcRuntime
from podling.kubelet.config import KubeletConfig
from podling.kubelet.kubelet import Kubelet
from podling.kubelet.server.server import KubeletServer, NodeAccess, Peer, server_tls
from podling.kubelet.worker.context import Admit, admit_all
from podling.machine.instance import Instance
from podling.machine.node_runtime import PAUSE_IMAGE
from podling.machine.pki import KeyPair
from podling.model.time import Clock
from podling.model.types.pod import Pod
from podling.streaming.driver import Connect

log = logging.getLogger(__name__)


class NodeSettings(msgspec.Struct, frozen=True):
    """The kubelet's server, on `listener`, shows `serving` and accepts clients with a certificate of
    `client_ca`. `api_server` is as in `KubeletConfig`."""

    instance: Instance
    options: NodeOptions
    ip: str
    listener: socket.socket
    subnets: str
    """Of the pods; as are addresses, of IPv6, too, if services have any."""
    serving: KeyPair
    client_ca: Path
    api_server: tuple[str, int] | None = None
    resolvers: tuple[str, ...] = ()
    """Where pods ask for names, if the options name no other."""
    ip6: str = ""

    @property
    def name(self) -> str:
        return self.options.name

    def kubelet_config(self) -> KubeletConfig:
        instance, options = self.instance, self.options
        return KubeletConfig(
            node_name=self.name,
            root_dir=instance.kubelet_dir,
            log_dir=instance.pod_logs_dir,
            node_ip=self.ip,
            node_ip6=self.ip6,
            kubelet_port=port_of(self.listener),
            api_server=self.api_server,
            cgroup_root=instance.cgroup,
            pod_cidr=self.subnets,
            gates=options.gates,
            sandbox_image=PAUSE_IMAGE,
            **{"cluster_dns": self.resolvers, **options.settings},
        )


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


class Neighbour(msgspec.Struct, frozen=True):
    """An API server of the same process. `peer` is its user to the kubelet; `join` tells it, while a kubelet
    serves, how to connect to the one at an address and port."""

    peer: Peer
    join: Callable[[str, int, Connect], AbstractContextManager[None]]


def reached_at_once(subnet: str, admit: Admit) -> Admit:
    """`admit`, once pods of a subnet of IPv6 reach their gateway."""
    # Most clusters have no IPv6, and their starts wait for imports.
    from podling.machine.gateways import gateway6, open_gateways

    gateway = gateway6(subnet)

    async def admitted(pod: Pod, addresses: Sequence[str]) -> str:
        try:
            open_gateways(gateway)
        except OSError as error:
            log.warning("the first packets of pods over IPv6 may take two seconds: %s", error)
        return await admit(pod, addresses)

    return admitted


class RunningNode:
    """Call `run()`; then `stop_pods()`, or leave them running; then `close()`."""

    def __init__(
        self,
        settings: NodeSettings,
        client: Client,
        clock: Clock,
        containerd: Containerd | None,
        neighbour: Neighbour | None = None,
        admit: Admit = admit_all,
    ) -> None:
        self._settings = settings
        self._neighbour = neighbour
        self._clock = clock
        self._containerd = containerd
        socket = str(containerd.settings.socket) if containerd else settings.options.cri_endpoint
        self._runtime = GrpcRuntime(socket)
        self._events = EventRecorder(client, clock, "kubelet", settings.name)
        self._access = NodeAccess(client, settings.name, clock)
        config = settings.kubelet_config()
        if containerd and (subnet6 := settings.subnets.partition(",")[2]):
            admit = reached_at_once(subnet6, admit)
        self.kubelet = Kubelet(client, self._runtime, self._events, clock, config, admit)

    async def run(self) -> None:
        settings, neighbour = self._settings, self._neighbour
        server = KubeletServer(self.kubelet, self._clock, self._access.allows, self._access.owner_of)
        tls = server_tls(settings.serving.certificate, settings.serving.key, settings.client_ca)

        async def serve() -> None:
            async with AsyncExitStack() as serving:
                await serving.enter_async_context(server.listening(settings.listener, tls))
                if neighbour is not None:
                    connect = await serving.enter_async_context(server.joined(neighbour.peer))
                    serving.enter_context(neighbour.join(settings.ip, port_of(settings.listener), connect))
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as tasks:
            if self._containerd is not None:
                tasks.create_task(self._containerd.supervise(log.error))
            tasks.create_task(self._events.run())
            tasks.create_task(self.kubelet.run())
            tasks.create_task(serve())

    async def stop_pods(self) -> None:
        await self.kubelet.stop_all()

    async def close(self) -> None:
        await self._runtime.close()
