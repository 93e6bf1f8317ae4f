"""`podling backup`: write the data that cannot be made again to one file."""

from __future__ import annotations

from pathlib import Path

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


@click.command()
@options.data_dir
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, resolve_path=True))
def backup(instance: Instance, file: Path) -> None:
    """Write FILE: all objects, certificates and keys, as they are now. podling may run meanwhile. Images and
    the files of pods are not in it."""
    from podling.assemble.backup import back_up

    with exit_on_start_error():
        copied = back_up(instance, file)
    click.echo(f"{file}: {copied.objects} objects at revision {copied.revision}")
