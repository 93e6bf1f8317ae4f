"""`podling down`: stop a podling and everything it runs; objects and images stay for the next `up`."""

from __future__ import annotations

import sys

import click

from podling.assemble.down import StartError, stop
from podling.cli import options
from podling.machine.instance import Instance


@click.command()
@options.data_dir
def down(instance: Instance) -> None:
    """Stop everything; the next `podling up` carries on with all objects."""
    try:
        stop(instance, click.echo)
    except StartError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
