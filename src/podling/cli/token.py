"""`podling token`: bootstrap tokens, by which machines join a cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

import click

from podling.cli import cluster as of_cluster
from podling.cli.cluster import Cluster
from podling.cli.options import Duration
from podling.cli.tables import aligned

if TYPE_CHECKING:
    from podling.client.client import Client
    from podling.remote import pods as remote


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
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="How long it can be used; 0s is for ever.",
)
@click.option("--description", default="", help="What it is for, for people.")
@click.option("--print-join-command", "prints_command", is_flag=True, help="Print how a machine joins by it.")
@of_cluster.options
def create(cluster: Cluster, token: str, ttl: float, description: str, prints_command: bool) -> None:
    """Make TOKEN, or one that is drawn, and print it. Whoever has it can become a node: keep it secret."""

    async def work(client: Client) -> str:
        from datetime import timedelta

        from podling.model.rules.bootstrap_tokens import new_token
        from podling.model.time import SystemClock
        from podling.remote import bootstrap_tokens

        made = token or new_token()
        until = SystemClock().now() + timedelta(seconds=ttl) if ttl else None
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
