"""The kubelet alone: a node of the API server that its kubeconfig names.

When it is told to stop it leaves its pods and its runtime running, as Kubernetes' kubelet does, and the next
one takes them over; `podling down` ends them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from podling.assemble import process
from podling.assemble.access import access_from
from podling.assemble.node import NodeSettings, RunningNode, port_of
from podling.assemble.node_options import NodeOptions, start_runtime
from podling.assemble.process import Report
from podling.assemble.settle import KUBELET_PORT, choose, port_before
from podling.client.client import Client
from podling.client.kubeconfig import Access
from podling.kubelet.kubelet import Kubelet
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
    process.run(lambda told_to_stop: _run(options, report, told_to_stop))


async def _run(options: KubeletOptions, report: Report, told_to_stop: asyncio.Event) -> None:
    access, clock = access_from(options.kubeconfig), SystemClock()
    check_machine()
    with hold(options.instance):
        with writing(options.instance.data_dir):
            settings = _settings(options, access, clock)
        containerd = await start_runtime(settings.instance, settings.subnet, settings.options, report)
        client = Client(access.transport())
        node = RunningNode(settings, client, clock, containerd)
        try:
            async with asyncio.TaskGroup() as tasks:
                saying = _say_ready(node.kubelet, f"Node {settings.name} of {access.server}", report)
                acting = [tasks.create_task(node.run()), tasks.create_task(saying)]
                await told_to_stop.wait()
                for task in acting:
                    task.cancel()
        finally:
            await node.close()
            await client.close()


async def _say_ready(kubelet: Kubelet, what: str, report: Report) -> None:
    await kubelet.wait_ready()
    report(f"{what} takes pods")


def _settings(options: KubeletOptions, access: Access, clock: Clock) -> NodeSettings:
    instance, ip = options.instance, options.node_ip or machine_address()
    instance.have_data_dir()
    wanted = (options.port,) if options.port else (port_before(instance) or KUBELET_PORT, 0)
    listening = listener(ip, *wanted)
    client_ca = options.client_ca or _client_ca(instance, access)
    serving = options.serving or _own_serving(instance, options.node.name, ip, clock)
    _check_tls(serving, client_ca)
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


def _own_serving(instance: Instance, name: str, ip: str, clock: Clock) -> KeyPair:
    """A serving certificate of an authority of the kubelet's own."""
    return Authority(instance.pki_dir, clock.now()).server("kubelet", f"system:node:{name}", [name, ip])


def _check_tls(serving: KeyPair, client_ca: Path) -> None:
    """Raises StartError for files that the kubelet's server cannot use."""
    try:
        server_tls(serving.certificate, serving.key, client_ca)
    except (OSError, ValueError) as error:
        raise StartError(f"--tls-cert-file, --tls-private-key-file or --client-ca-file: {error}") from error


def _client_ca(instance: Instance, access: Access) -> Path:
    """The kubeconfig's authority, written to a file. Raises StartError when the kubeconfig has none."""
    if not access.certificate_authority:
        raise StartError("the kubeconfig names no certificate authority: give one with --client-ca-file")
    file = instance.pki_dir / "client-ca.crt"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(access.certificate_authority)
    return file
