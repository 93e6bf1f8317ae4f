"""`podling services`: where the addresses of services lead to."""

from __future__ import annotations

import asyncio
import socket

import click

from podling.cli import cluster as of_cluster
from podling.cli import complete
from podling.cli import options as of_machine
from podling.cli.cluster import Cluster
from podling.machine.instance import Instance


@click.group()
def services() -> None:
    """Say where the addresses of services lead to."""


@services.command()
@click.argument("what", metavar="ADDRESS:PORT|NAME", shell_complete=complete.services)
@click.option("--node-name", default="", metavar="NAME", help="As which node.  [default: this host's name]")
@of_machine.data_dir
@of_cluster.options
def explain(cluster: Cluster, what: str, node_name: str, instance: Instance) -> None:
    """Say to which endpoints a service leads on this node, by which rule, and why to none.

    What the kernel has is read by root alone.
    """
    from podling.assemble.explain import explain as explained
    from podling.assemble.network import ProxyOptions
    from podling.client.client import Client
    from podling.model.errors import StatusError

    choices = instance.choices()
    node = node_name or socket.gethostname().lower()
    options = ProxyOptions(instance, node, services=choices.service_range if choices else "")

    async def asked() -> list[str]:
        client = Client(cluster.access.transport())
        try:
            return await explained(client, options, what.removeprefix("svc/"), cluster.namespace)
        finally:
            await client.close()

    try:
        lines = asyncio.run(asked())
    except (OSError, StatusError) as error:
        of_cluster.fail(str(error))
    for line in lines:
        click.echo(line)
