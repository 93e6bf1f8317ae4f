"""The `podling` command: its subcommands, and how a failure they expected is shown."""

from __future__ import annotations

import click

from podling import __version__
from podling.cli.doctor import doctor
from podling.cli.down import down
from podling.cli.images import images
from podling.cli.status import status
from podling.cli.up import up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="podling")
def main() -> None:
    """Kubernetes pods in one process."""


for command in (up, down, status, doctor, images):
    main.add_command(command)
