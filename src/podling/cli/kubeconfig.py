"""`podling kubeconfig`: what a node's kubelet needs to join."""

from __future__ import annotations

from pathlib import Path

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import DEFAULT_PORT, Instance


@click.command()
@options.data_dir
@click.option("--node", required=True, help="The node whose kubelet is to use it.")
@click.option(
    "--server",
    default=f"https://127.0.0.1:{DEFAULT_PORT}",
    show_default=True,
    help="Where that node reaches the API server.",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def kubeconfig(instance: Instance, node: str, server: str, file: Path) -> None:
    """Write FILE, a kubeconfig for `podling kubelet`, with a certificate of the API server that keeps its
    data in the data directory."""
    from podling.assemble.kubeconfigs import grant_node

    with exit_on_start_error():
        grant_node(instance, node, server, file)
    click.echo(f"podling kubelet --kubeconfig {file} --node-name {node}")
