"""`podling down`: stop a podling and everything it runs; objects and images stay for the next `up`."""

from __future__ import annotations

import click

from podling.assemble.down import stop
from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


@click.command()
@options.data_dir
def down(instance: Instance) -> None:
    """Stop everything; the next `podling up` carries on with all objects."""
    with exit_on_start_error():
        stop(instance, click.echo)
