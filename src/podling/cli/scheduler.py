"""`podling scheduler`: the scheduler alone."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from podling.cli import options
from podling.machine.instance import Instance


@click.command()
@options.kubeconfig_in("scheduler.conf")
def scheduler(instance: Instance, kubeconfig: Path) -> None:
    """Give pods their nodes, on the API server that the kubeconfig names."""
    from podling.assemble.controllers import StartError, schedule

    try:
        schedule(kubeconfig, click.echo)
    except StartError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
