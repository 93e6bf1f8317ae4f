"""`podling dns`: cluster DNS alone; `podling dns query`: what it says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from podling.cli import cluster as of_cluster
from podling.cli import options
from podling.cli.addresses import bind_address, names_elsewhere
from podling.cli.cluster import Cluster
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


class _Answering(click.Group):
    """Whose own options are for serving: with a command they are not looked at."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.resilient_parsing = bool(args) and args[0] in self.commands
        rest = super().parse_args(ctx, args)
        ctx.resilient_parsing = False
        return rest


@click.group(cls=_Answering, invoke_without_command=True)
@options.kubeconfig_in("admin.conf")
@click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=53, show_default=True, help="For UDP and TCP.")
@click.option(
    "--cluster-domain", default="cluster.local", show_default=True, help="Of the cluster's services."
)
@click.option(
    "--cluster-ip",
    default="",
    metavar="ADDRESS",
    help="Have the service kube-dns, at this address of the services' range, lead here.",
)
@click.option(
    "--resolv-conf",
    type=click.Path(path_type=Path),
    default=Path("/etc/resolv.conf"),
    show_default=True,
    help="Whose servers are asked for all other names.",
)
@names_elsewhere("--")
@bind_address(
    "--metrics-bind-address", "metrics", "127.0.0.1:9153", "Where /metrics, /health and /ready are answered"
)
@click.pass_context
def dns(
    context: click.Context,
    instance: Instance,
    kubeconfig: Path,
    address: str,
    port: int,
    cluster_domain: str,
    cluster_ip: str,
    resolv_conf: Path,
    elsewhere: dict[str, Any],
    metrics: tuple[str, int] | None,
) -> None:
    """Answer the names of services and pods, of the API server that the kubeconfig names."""
    if context.invoked_subcommand is not None:
        return
    from podling.assemble.dns import DNSOptions, run
    from podling.assemble.settle import ElsewhereOptions

    outside = ElsewhereOptions(**elsewhere)
    chosen = DNSOptions(kubeconfig, address, port, cluster_domain, cluster_ip, resolv_conf, outside, metrics)
    with exit_on_start_error():
        run(chosen, click.echo)


@dns.command()
@click.argument("name")
@click.option(
    "--type",
    "type_",
    type=click.Choice(["A", "AAAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT"], case_sensitive=False),
    default="A",
    show_default=True,
    help="What is asked for; an address is always asked for its name.",
)
@click.option("--server", default="", metavar="ADDRESS[:PORT]", help="Whom to ask.  [default: cluster DNS]")
@click.option(
    "--cluster-domain", default="cluster.local", show_default=True, help="Of the cluster's services."
)
@of_cluster.options
def query(cluster: Cluster, name: str, type_: str, server: str, cluster_domain: str) -> None:
    """Ask for NAME as a pod of the namespace would: below its search domains, unless it ends with a dot."""
    from podling.assemble.dns import query as asked
    from podling.client.client import Client
    from podling.model.errors import StatusError

    async def lines() -> list[str]:
        client = Client(cluster.access.transport())
        try:
            return await asked(client, server, name, type_.upper(), cluster.namespace, cluster_domain)
        finally:
            await client.close()

    try:
        said = asyncio.run(lines())
    except (OSError, StatusError, ValueError) as error:
        of_cluster.fail(str(error))
    for line in said:
        click.echo(line)
