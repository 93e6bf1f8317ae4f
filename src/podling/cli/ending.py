"""How a command ends that cannot do what it is for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def exit_on_start_error(tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """A StartError ends the command with its exit code. It is told to stderr unless `tell` is given."""
    # Not before the command runs: `--help`, and who waits for `up --detach`, need nothing of it.
    from podling.machine.start import StartError

    try:
        yield
    except StartError as error:
        message = f"Error: {error}"
        tell(message) if tell else click.echo(message, err=True)
        sys.exit(error.exit_code)
