"""`podling migrate-storage`: move all objects from the data directory to etcd, or back."""

from __future__ import annotations

from typing import Any

import click

from podling.cli import etcd_options, options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance


@click.command()
@options.data_dir
@click.option("--to", type=click.Choice(["etcd", "sqlite"]), required=True, help="Where objects go.")
@etcd_options.etcd
def migrate_storage(instance: Instance, to: str, etcd: dict[str, Any]) -> None:
    """Copy all objects from the data directory to the etcd of --etcd-servers, or from there to the data
    directory, and compare them. The target must be empty; what was cut short goes on when it is run again.
    Nobody may write to either meanwhile."""
    if not etcd["servers"]:
        raise click.UsageError("--etcd-servers is needed: one of source and target is an etcd")
    from podling.assemble.migrate import migrate
    from podling.assemble.settle import EtcdOptions

    with exit_on_start_error():
        copied = migrate(instance, EtcdOptions(**etcd), to_etcd=to == "etcd")
    click.echo(
        f"{copied.objects} objects are in {to} and equal to their source; {copied.written} were written"
    )
