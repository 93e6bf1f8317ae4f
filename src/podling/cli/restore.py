"""`podling restore`: replace the data with that of a backup."""

from __future__ import annotations

from pathlib import Path

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


@click.command()
@options.data_dir
@click.option("--force", is_flag=True, help="Replace the objects, certificates and keys that are there.")
@click.option("--accept-loss", is_flag=True, help="Go on from what is there, although later writes are lost.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
def restore(instance: Instance, file: Path | None, force: bool, accept_loss: bool) -> None:
    """Make the data directory what the backup FILE holds; the next `podling up` goes on from there."""
    if (file is None) != accept_loss:
        raise click.UsageError("give either a FILE or --accept-loss")
    from podling.assemble import restore as going_back

    with exit_on_start_error():
        restored = (
            going_back.restore(instance, file, force=force) if file else going_back.accept_loss(instance)
        )
    click.echo(f"{restored.objects} objects are back; their revisions go on from {restored.revision}")
