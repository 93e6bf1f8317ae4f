"""The kubelet alone: a node of the API server that its kubeconfig names.

When it is told to stop it leaves its pods and its runtime running, as Kubernetes' kubelet does, and the next
one takes them over; `podling down` ends them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from socket import socket

import msgspec

from podling.assemble import process
from podling.assemble.node import NodeSettings, RunningNode, port_of
from podling.assemble.node_options import NodeOptions, start_runtime
from podling.assemble.process import Report
from podling.assemble.settle import KUBELET_PORT, choose, port_before
from podling.client import kubeconfig
from podling.client.client import Client
from podling.client.kubeconfig import Access
from podling.kubelet.server.server import server_tls
from podling.machine.instance import Instance
from podling.machine.pki import Authority, KeyPair
from podling.machine.start import StartError, check_machine, hold, listener, machine_address, writing
from podling.model.time import Clock, SystemClock


class KubeletOptions(msgspec.Struct, frozen=True):
    """What the command line asks for; what is empty is found out. `client_ca` is the authority of those who
    may ask the kubelet, the kubeconfig's when None; `serving` is made by an authority of the kubelet's own
    when None. `pod_cidr` is one no other podling of the machine has, when empty. `api_server` is as in
    `KubeletConfig`."""

    instance: Instance
    kubeconfig: Path
    node: NodeOptions = msgspec.field(default_factory=NodeOptions)
    node_ip: str = ""
    port: int | None = None
    pod_cidr: str = ""
    client_ca: Path | None = None
    serving: KeyPair | None = None
    api_server: tuple[str, int] | None = None


def run(options: KubeletOptions, report: Report) -> None:
    """Run the node until told to stop. Raises StartError."""

    async def main(told_to_stop: asyncio.Event) -> None:
        try:
            access = kubeconfig.read(options.kubeconfig)
        except kubeconfig.KubeconfigError as error:
            raise StartError(str(error)) from error
        check_machine()
        clock = SystemClock()
        instance, ip = options.instance, options.node_ip or machine_address()
        with hold(instance):
            wanted = (options.port,) if options.port else (port_before(instance) or KUBELET_PORT, 0)
            with listener(ip, *wanted) as listening:
                with writing(instance.data_dir):
                    settings = _settings(options, access, ip, listening, clock)
                await _serve(settings, access, clock, told_to_stop, report)

    process.run(main)


async def _serve(
    settings: NodeSettings, access: Access, clock: Clock, told_to_stop: asyncio.Event, report: Report
) -> None:
    containerd = await start_runtime(settings.instance, settings.subnet, settings.options, report)
    client = Client(access.transport())
    node = RunningNode(settings, client, clock, containerd)

    async def say_ready() -> None:
        await node.kubelet.wait_ready()
        report(f"Node {settings.name} of {access.server} takes pods")
        process.started()

    try:
        async with asyncio.TaskGroup() as tasks:
            acting = [tasks.create_task(node.run()), tasks.create_task(say_ready())]
            await told_to_stop.wait()
            for task in acting:
                task.cancel()
    finally:
        await node.close()
        await client.close()


def _settings(
    options: KubeletOptions, access: Access, ip: str, listening: socket, clock: Clock
) -> NodeSettings:
    """Fill in what the options leave open. Raises StartError."""
    instance, name = options.instance, options.node.name
    instance.have_data_dir()
    client_ca = options.client_ca
    if client_ca is None:
        if not access.certificate_authority:
            raise StartError("the kubeconfig names no certificate authority: give one with --client-ca-file")
        client_ca = instance.pki_dir / "client-ca.crt"
        client_ca.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        client_ca.write_bytes(access.certificate_authority)
    serving = options.serving
    if serving is None:
        authority = Authority(instance.pki_dir, clock.now())
        serving = authority.server("kubelet", f"system:node:{name}", [name, ip])
    try:
        # Here only to be read: what the kubelet's server cannot use is refused before anything starts.
        server_tls(serving.certificate, serving.key, client_ca)
    except (OSError, ValueError) as error:
        raise StartError(f"--tls-cert-file, --tls-private-key-file or --client-ca-file: {error}") from error
    return NodeSettings(
        instance=instance,
        options=options.node,
        ip=ip,
        listener=listening,
        subnet=choose(instance, port_of(listening), options.pod_cidr).subnet,
        serving=serving,
        client_ca=client_ca,
        api_server=options.api_server,
    )
