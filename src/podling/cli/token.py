"""`podling token`: bootstrap tokens, by which machines join a cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

import click

from podling.cli import cluster as of_cluster
from podling.cli import options
from podling.cli.cluster import Cluster
from podling.cli.options import Duration
from podling.cli.tables import aligned
from podling.machine.instance import Instance

if TYPE_CHECKING:
    from podling.client.client import Client
    from podling.remote import pods as remote

HOURS, HOURS_OF_SERVERS = 24, 2
"""In which a token can be used."""


@click.group()
def token() -> None:
    """Make, list and delete the tokens by which machines join."""


def _ask(cluster: Cluster, work: Callable[[Client], Awaitable[str]]) -> NoReturn:
    """Print what `work` returns."""

    async def asked(of: remote.Cluster) -> int:
        try:
            click.echo(await work(of.client()))
        except ValueError as error:
            return of_cluster.tell(str(error))
        return 0

    of_cluster.ask(cluster, asked)


@token.command()
@click.argument("token", default="")
@click.option(
    "--ttl",
    type=Duration(),
    metavar="DURATION",
    help="How long it can be used; 0s is for ever.  [default: 24h; 2h with --control-plane]",
)
@click.option("--description", default="", help="What it is for, for people.")
@click.option("--print-join-command", "prints_command", is_flag=True, help="Print how a machine joins by it.")
@click.option(
    "--control-plane",
    "of_server",
    is_flag=True,
    help="For one more API server, of the cluster of --data-dir; prints how a machine becomes it.",
)
@options.data_dir
@of_cluster.options
def create(
    cluster: Cluster,
    token: str,
    ttl: float | None,
    description: str,
    prints_command: bool,
    of_server: bool,
    instance: Instance,
) -> None:
    """Make TOKEN, or one that is drawn, and print it. Whoever has it can become a node, and who has what
    --control-plane prints an administrator: keep it secret."""
    if of_server and ttl == 0:
        raise click.UsageError("--control-plane needs a --ttl: who has such a command has all secrets")

    async def work(client: Client) -> str:
        from datetime import timedelta

        from podling.model.rules.bootstrap_tokens import new_token
        from podling.model.time import SystemClock
        from podling.remote import bootstrap_tokens

        made = token or new_token()
        seconds = ttl if ttl is not None else HOURS_OF_SERVERS * 3600 if of_server else HOURS * 3600
        until = SystemClock().now() + timedelta(seconds=seconds) if seconds else None
        if of_server:
            assert until is not None
            from podling.assemble import server_secrets
            from podling.machine.start import StartError

            try:
                handed = server_secrets.read(instance, cluster.access.certificate_authority)
            except StartError as error:
                raise ValueError(str(error)) from error
            key = server_secrets.new_key()
            await server_secrets.hand_over(client, handed, made, key, until, description)
            command = await bootstrap_tokens.join_command(client, made)
            return f"{command} --control-plane --certificate-key {key}"
        await bootstrap_tokens.create(client, made, until, description)
        return await bootstrap_tokens.join_command(client, made) if prints_command else made

    _ask(cluster, work)


@token.command("list")
@of_cluster.options
def listed(cluster: Cluster) -> None:
    """Say which there are, how long they can be used, and for what."""

    async def work(client: Client) -> str:
        from podling.model.time import SystemClock
        from podling.remote import bootstrap_tokens

        return "\n".join(aligned(await bootstrap_tokens.rows(client, SystemClock().now())))

    _ask(cluster, work)


@token.command()
@click.argument("token")
@of_cluster.options
def delete(cluster: Cluster, token: str) -> None:
    """End TOKEN, which may be its id alone: the part before the dot. Nodes that have joined by it stay."""

    async def work(client: Client) -> str:
        from podling.remote import bootstrap_tokens

        return f'bootstrap token "{await bootstrap_tokens.delete(client, token)}" deleted'

    _ask(cluster, work)
