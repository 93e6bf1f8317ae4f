"""`podling controllers`: the controllers alone."""

from __future__ import annotations

from pathlib import Path

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


@click.command()
@options.kubeconfig_in("controller-manager.conf")
@click.option(
    "--root-ca-file",
    "root_ca",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The authority pods are given to trust.  [default: the kubeconfig's]",
)
def controllers(instance: Instance, kubeconfig: Path, root_ca: Path | None) -> None:
    """Reconcile objects, on the API server that the kubeconfig names."""
    from podling.assemble.controllers import control

    with exit_on_start_error():
        control(kubeconfig, root_ca, click.echo)
