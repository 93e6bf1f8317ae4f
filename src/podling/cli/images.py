"""`podling images`: fill the runtime with images, from registries or from files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance
from podling.machine.node_runtime import ImageStore, open_images

T = TypeVar("T")


@click.group()
def images() -> None:
    """Pull, load and list the images of a running podling."""


@images.command()
@options.data_dir
@click.argument("image")
def pull(instance: Instance, image: str) -> None:
    """Pull IMAGE from its registry (or the registry's mirror)."""
    click.echo(_with(instance, lambda store: store.pull(image)))


@images.command()
@options.data_dir
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def load(instance: Instance, archive: Path) -> None:
    """Load every image of ARCHIVE, a docker or OCI archive (tar)."""
    for name in _with(instance, lambda store: store.load(archive)):
        click.echo(name)


@images.command("list")
@options.data_dir
def list_(instance: Instance) -> None:
    """List the images the runtime has."""
    rows = _with(instance, lambda store: store.list())
    width = max((len(name) for name, _ in rows), default=0)
    for name, size in rows:
        click.echo(f"{name:<{width}}  {size / 1e6:8.1f} MB")


@exit_on_start_error()
def _with(instance: Instance, use: Callable[[ImageStore], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_images(instance) as store:
            return await use(store)

    return asyncio.run(run())
