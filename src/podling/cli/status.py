"""`podling status`: whether podling runs, and what it runs, in a few lines."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import click

from podling.cli import options
from podling.client import kubeconfig
from podling.client.client import Client
from podling.machine.instance import Instance
from podling.model.errors import StatusError
from podling.model.types.node import Node
from podling.model.types.pod import Pod


@click.command()
@options.data_dir
def status(instance: Instance) -> None:
    """Say whether podling runs, and what it runs. Exit 3 when it does not."""
    try:
        pid = instance.running()
    except PermissionError as error:
        raise click.ClickException(f"{error.filename} is for root to read: run podling with sudo") from error
    if pid is None:
        click.echo(f"podling is not running for {instance.data_dir}")
        sys.exit(3)
    click.echo(f"podling is running for {instance.data_dir} (process {pid})")
    try:
        shown = asyncio.run(_shown(instance))
    except (kubeconfig.KubeconfigError, OSError, StatusError) as error:
        click.echo(f"but its API server does not answer: {error}", err=True)
        sys.exit(1)
    # Outside of what an API server's failure is told from: a pipe nobody reads is an OSError, too.
    for line in shown:
        click.echo(line)


async def _shown(instance: Instance) -> list[str]:
    file, pods_of = instance.kubeconfig, ""
    if instance.joined_kubeconfig.exists():
        # A node of another cluster, which may list its own pods.
        from podling.assemble.node_certificates import node_of

        file, pods_of = instance.joined_kubeconfig, f"spec.nodeName={node_of(instance.pki_dir)}"
    access = kubeconfig.read(file)
    client = Client(access.transport())
    try:
        nodes = (await client.list(Node)).items
        pods = (await client.list(Pod, field_selector=pods_of)).items
    finally:
        await client.close()
    return [
        f"API server   {access.server}",
        f"kubeconfig   {file}",
        *(f"node         {node.metadata.name}: {condition(node)}" for node in nodes),
        f"pods         {phases(pods)}",
    ]


def condition(node: Node) -> str:
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is None:
        return "no Ready condition yet"
    return "Ready" if ready.status == "True" else f"not ready ({ready.reason}: {ready.message})"


def phases(pods: list[Pod]) -> str:
    """`3 Running, 1 Pending`, the most frequent first."""
    counts = Counter(sorted(pod.status.phase for pod in pods)).most_common()
    return ", ".join(f"{count} {phase}" for phase, count in counts) or "none"
