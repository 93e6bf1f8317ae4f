"""`podling policies`: whom network policies let through."""

from __future__ import annotations

import asyncio
import socket

import click

from podling.cli import cluster as of_cluster
from podling.cli import options as of_machine
from podling.cli.cluster import Cluster
from podling.machine.instance import Instance

PROTOCOLS = ("tcp", "udp", "sctp")


@click.group()
def policies() -> None:
    """Say whom network policies let through."""


@policies.command()
@click.argument("source", metavar="FROM")
@click.argument("destination", metavar="TO")
@click.argument("port", type=click.IntRange(1, 65535))
@click.option(
    "--protocol", type=click.Choice(PROTOCOLS, case_sensitive=False), default="tcp", help="[default: tcp]"
)
@click.option("--node-name", default="", metavar="NAME", help="As which node.  [default: this host's name]")
@of_machine.data_dir
@of_cluster.options
def explain(
    cluster: Cluster,
    source: str,
    destination: str,
    port: int,
    protocol: str,
    node_name: str,
    instance: Instance,
) -> None:
    """Say whether policies let FROM reach a port of TO, by which, and why not. Both are an ADDRESS, a POD, or
    a NAMESPACE/POD; of a service, ask for a pod behind it.

    What the kernel has is read by root alone.
    """
    from podling.assemble.policy_explain import Question, explain_policies
    from podling.client.client import Client
    from podling.model.errors import StatusError

    node = node_name or socket.gethostname().lower()
    question = Question(source, destination, port, protocol.lower())

    async def asked() -> list[str]:
        client = Client(cluster.access.transport())
        try:
            return await explain_policies(client, instance, node, question, cluster.namespace)
        finally:
            await client.close()

    try:
        lines = asyncio.run(asked())
    except (OSError, StatusError, ValueError) as error:
        of_cluster.fail(str(error))
    for line in lines:
        click.echo(line)
