"""The kubelet alone: a node of the API server that its kubeconfig names.

When it is told to stop it leaves its pods and its runtime running, as Kubernetes' kubelet does, and the next
one takes them over; `podling down` ends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podling.assemble import process
from podling.assemble.alone import read_access
from podling.assemble.node import NodeSettings, RunningNode, port_of
from podling.assemble.node_certificates import (
    RotatedLogin,
    Rotation,
    Wanted,
    client_certificate,
    serving_certificate,
    shown_at_first,
)
from podling.assemble.node_options import NodeOptions, start_runtime
from podling.assemble.policies import asking
from podling.assemble.process import Report
from podling.assemble.settle import KUBELET_PORT, choose, port_before
from podling.client.client import Client
from podling.client.kubeconfig import Access
from podling.kubelet.server.server import server_tls
from podling.kubelet.worker.context import Admit, admit_all
from podling.machine.instance import Instance
from podling.machine.pki import Authority, KeyPair, renew_forever
from podling.machine.start import StartError, check_machine, hold, listener, machine_address, writing
from podling.model.time import Clock, SystemClock


class KubeletOptions(msgspec.Struct, frozen=True):
    """What the command line asks for; what is empty is found out. `client_ca` is the authority of those who
    may ask the kubelet, the kubeconfig's when None; `serving` is made by an authority of the kubelet's own
    when None. `node_ip` and `pod_cidr` may have one of IPv6 after a comma; when empty the subnet is one that
    no other podling of the machine has. `api_server` is as in
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
    rotates: bool = False
    """Whether it asks the cluster for a client certificate of its own, and renews it."""
    rotates_server: bool = False
    """Whether it does so for its server's, which is of its own authority until one is issued."""


def run(options: KubeletOptions, report: Report) -> None:
    """Run the node until told to stop. Raises StartError."""

    async def main(told_to_stop: asyncio.Event) -> None:
        access = read_access(options.kubeconfig)
        check_machine()
        clock = SystemClock()
        instance, ip = options.instance, options.node_ip.partition(",")[0] or machine_address()
        with hold(instance):
            wanted = (options.port,) if options.port else (port_before(instance) or KUBELET_PORT, 0)
            with listener(ip, *wanted) as listening:
                with writing(instance.data_dir):
                    instance.have_data_dir()
                    certified = certify(options, ip, clock)
                    settings = settle(options, certified.serving, access, ip, listening)
                    if options.rotates:
                        own = client_certificate(instance.pki_dir, options.node.name)
                        login = RotatedLogin(own, access.trust, access.login, clock)
                        access = replace(access, login=login)
                client = Client(access.transport())

                def say_ready() -> None:
                    report(f"Node {settings.name} of {access.server} takes pods")

                admit = asking(instance.policies_socket)
                try:
                    async with asyncio.TaskGroup() as tasks:
                        acting = [
                            tasks.create_task(one)
                            for one in (
                                keep_certified(options, ip, client, certified.due, clock),
                                serve(settings, client, clock, report, say_ready, admit),
                            )
                        ]
                        await told_to_stop.wait()
                        for task in acting:
                            task.cancel()
                finally:
                    await client.close()

    process.run(main)


async def serve(
    settings: NodeSettings,
    client: Client,
    clock: Clock,
    report: Report,
    ready: Callable[[], None],
    admit: Admit,
) -> None:
    """Run the node until cancelled, which leaves its pods running. `ready` is called once it takes pods;
    `admit` holds for podling's own runtime."""
    containerd = await start_runtime(settings.instance, settings.subnets, settings.options, report)
    node = RunningNode(settings, client, clock, containerd, admit=admit if containerd else admit_all)

    async def say_ready() -> None:
        await node.kubelet.wait_ready()
        ready()
        process.started()

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(node.run())
            tasks.create_task(say_ready())
    finally:
        await node.close()


async def keep_certified(
    options: KubeletOptions, ip: str, client: Client, due: datetime, clock: Clock
) -> None:
    """Renew its certificates in time, until cancelled; those of its own authority are `due`."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(renew_forever(due, lambda: certify(options, ip, clock).due, clock))
        for one in _wanted(options, ip):
            tasks.create_task(Rotation(client, one, clock).run())


def _wanted(options: KubeletOptions, ip: str) -> Sequence[Wanted]:
    """The certificates that are asked for, the client's first."""
    directory, name = options.instance.pki_dir, options.node.name
    wanted = [client_certificate(directory, name)] if options.rotates else []
    return [*wanted, serving_certificate(directory, name, [name, ip])] if options.rotates_server else wanted


class OwnCertificate(NamedTuple):
    """What the kubelet's server shows, and when it is to be made again: never if it was given."""

    serving: KeyPair
    due: datetime


def certify(options: KubeletOptions, ip: str, clock: Clock) -> OwnCertificate:
    """Its server's certificate. Raises StartError."""
    if options.serving is not None:
        return OwnCertificate(options.serving, datetime.max.replace(tzinfo=UTC))
    authority, name = Authority(options.instance.pki_dir, clock.now()), options.node.name
    serving = authority.server("kubelet", f"system:node:{name}", [name, ip])
    if options.rotates_server:
        serving = shown_at_first(_wanted(options, ip)[-1], serving, clock.now())
    return OwnCertificate(serving, authority.due)


def settle(
    options: KubeletOptions, serving: KeyPair, access: Access, ip: str, listening: socket
) -> NodeSettings:
    """Fill in what the options leave open. Raises StartError."""
    instance = options.instance
    client_ca = options.client_ca
    if client_ca is None:
        if not access.certificate_authority:
            raise StartError("the kubeconfig names no certificate authority: give one with --client-ca-file")
        client_ca = instance.pki_dir / "client-ca.crt"
        client_ca.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        client_ca.write_bytes(access.certificate_authority)
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
        subnets=_subnets(options, port_of(listening)),
        serving=serving,
        client_ca=client_ca,
        api_server=options.api_server,
        ip6=options.node_ip.partition(",")[2],
    )


def _subnets(options: KubeletOptions, port: int) -> str:
    wanted, *beside = options.pod_cidr.split(",")
    return ",".join([choose(options.instance, port, wanted).subnet, *beside])
