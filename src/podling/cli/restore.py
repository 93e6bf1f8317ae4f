"""`podling restore`: go back to what a backup holds."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from podling.cli import options
from podling.instance import Instance


@click.command()
@options.data_dir
@click.option("--force", is_flag=True, help="Replace the objects, certificates and keys that are there.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore(instance: Instance, file: Path, force: bool) -> None:
    """Make the data directory what the backup FILE holds; the next `podling up` goes on from there."""
    from podling.assemble.restore import StartError, restore

    try:
        restored = restore(instance, file, force=force)
    except StartError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    click.echo(f"{restored.objects} objects are back; their revisions go on from {restored.revision}")
