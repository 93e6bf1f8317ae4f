"""Leaving podling running (`podling up --detach`): the process divides in two. The one that was started shows
what the other reports, and ends when that is ready or has failed; the other goes on in a session of its own,
its output in a file.

Divided, not started anew: Python and the command line are there already, which is a tenth of a cold start. So
it is done before any part of podling is imported: a process that has threads cannot be divided.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

import click

READY = "ready"
STANDARD_STREAMS = 3


class Reports:
    """What the one that goes on tells the one that waits, by the descriptor `pipe`; once nobody waits, lines
    go to the log."""

    def __init__(self, pipe: int) -> None:
        self._pipe: int | None = pipe

    def line(self, text: str) -> None:
        try:
            if self._pipe is not None:
                os.write(self._pipe, f"{text}\n".encode())
                return
        except OSError:
            self._close()
        click.echo(text)

    def ready(self) -> None:
        self.line(READY)
        self._close()

    def _close(self) -> None:
        # Its number may be another's from now on.
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


def divide(log: Path) -> Reports:
    """Returns in the one that goes on; the other exits, with the exit code of that when it was told of no
    readiness."""
    output = _opened(log)
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.close(writing)
        sys.exit(_wait(child, reading, log))
    os.setsid()
    _redirect(output, writing)
    return Reports(writing)


def _opened(log: Path) -> int:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise click.ClickException(f"no log can be written: {error}") from error


def _redirect(output: int, pipe: int) -> None:
    """Nothing else stays open: whoever started this may wait for the end of any descriptor it handed down.
    The pipe's end tells that podling has ended, whatever it has started meanwhile: that inherits no pipe."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, descriptor in enumerate((nothing, output, output)):
        os.dup2(descriptor, stream)
    os.closerange(STANDARD_STREAMS, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))


def _wait(child: int, reading: int, log: Path) -> int:
    with os.fdopen(reading) as reports:
        if _show(reports):
            return 0
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    click.echo(f"podling did not start (exit code {code}); its log is {log}", err=True)
    return code if code > 0 else 1


def _show(reports: IO[str]) -> bool:
    """Whether it became ready."""
    for line in reports:
        if line.rstrip("\n") == READY:
            return True
        click.echo(line, nl=False, err=line.startswith("Error: "))
    return False
