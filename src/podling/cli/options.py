"""Options that several commands share, so that they read and default alike."""

from __future__ import annotations

from pathlib import Path

import click

from podling.instance import DEFAULT_DATA_DIR, Instance


def _instance(context: click.Context, parameter: click.Parameter, value: Path) -> Instance:
    return Instance.at(value)


data_dir = click.option(
    "--data-dir",
    "instance",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_DATA_DIR,
    show_default=True,
    envvar="PODLING_DATA_DIR",
    callback=_instance,
    help="Where this podling keeps everything; podlings with different directories live side by side.",
)
