"""`podling leave`: this machine is no node of its cluster any more."""

from __future__ import annotations

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


@click.command()
@options.data_dir
@click.option(
    "--timeout",
    "within",
    type=options.Duration(),
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long its pods may take to end.",
)
@click.option("--force", is_flag=True, help="Leave though pods that nobody makes again are lost.")
def leave(instance: Instance, within: float, force: bool) -> None:
    """Evict the pods of this node, as their disruption budgets allow, remove it from its cluster, stop it,
    and forget the cluster. Volumes and images of the machine stay."""
    from podling.assemble.leave import LeaveOptions, run

    with exit_on_start_error():
        run(LeaveOptions(instance, within, force), click.echo)
