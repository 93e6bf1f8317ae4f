"""`podling backup`: what cannot be made again, in one file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from podling.cli import options
from podling.machine.instance import Instance


@click.command()
@options.data_dir
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, resolve_path=True))
def backup(instance: Instance, file: Path) -> None:
    """Write FILE: all objects, certificates and keys, as they are now. podling may run meanwhile. Images and
    the files of pods are not in it."""
    from podling.assemble.backup import StartError, back_up

    try:
        copied = back_up(instance, file)
    except StartError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    click.echo(f"{file}: {copied.objects} objects at revision {copied.revision}")
