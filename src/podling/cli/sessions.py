"""`podling sessions`: the debug containers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podling.cli import cluster as of_cluster
from podling.cli.cluster import Cluster
from podling.cli.tables import aligned, structured

if TYPE_CHECKING:
    from podling.remote import pods as remote

HEADS = ["NAMESPACE", "POD", "CONTAINER", "IMAGE", "TARGET", "BY", "STATE", "AGE", "ENDS IN"]
WIDE = ["NODE", "COMMAND"]


@click.command()
@click.option("--running", "only_running", is_flag=True, help="Only those that run.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "wide", "name"]))
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@of_cluster.options
def sessions(cluster: Cluster, only_running: bool, output: str | None, all_namespaces: bool) -> None:
    """List debug containers: who added them, with which image, since when, and how they stand.

    \b
    Examples:
      podling sessions --running
      podling sessions -A -o wide
    """

    namespace = "" if all_namespaces else cluster.namespace

    async def work(asked: remote.Cluster) -> int:
        import shlex

        from podling.debug.sessions import sessions as sessions_of
        from podling.model.time import SystemClock

        pods = await asked.all(namespace)
        found = [one for one in sessions_of(pods) if one.is_running or not only_running]
        if output in ("json", "yaml"):
            click.echo(structured(found, output))
        elif output == "name":
            for one in found:
                click.echo(f"{one.namespace}/{one.pod}/{one.container}")
        elif not found:
            click.echo("No debug containers found.", err=True)
        else:
            now, is_wide = SystemClock().now(), output == "wide"
            rows = [[*HEADS, *(WIDE if is_wide else ())]]
            for one in found:
                who = [one.namespace, one.pod, one.container, one.image, one.target, one.by]
                more = [one.node, shlex.join(one.command).replace("\n", " ")] if is_wide else []
                rows.append([*who, one.state, one.age(now), one.left(now), *more])
            click.echo("\n".join(aligned(rows)))
        return 0

    of_cluster.ask(cluster, work, of_cluster.asked_pods(namespace))
