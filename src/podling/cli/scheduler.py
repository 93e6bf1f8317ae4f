"""`podling scheduler`: the scheduler alone."""

from __future__ import annotations

from pathlib import Path

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


@click.command()
@options.kubeconfig_in("scheduler.conf")
@options.secure_port(10259)
@options.leader_elect
def scheduler(instance: Instance, kubeconfig: Path, port: int, elects: bool) -> None:
    """Give pods their nodes, on the API server that the kubeconfig names."""
    from podling.assemble.controllers import schedule

    with exit_on_start_error():
        schedule(kubeconfig, port, click.echo, elects=elects)
