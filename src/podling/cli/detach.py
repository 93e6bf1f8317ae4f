"""`podling up --detach`: fork, so that podling runs on in the background.

The parent shows what the child reports, and exits when the child is ready or has failed. The child continues
in a session of its own with its output in the log file.

It forks rather than starting a new process because Python and the command line are loaded already, which is a
tenth of a cold start. It does so before any part of podling is imported, because a process with threads
cannot be forked safely.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

READY = "ready"
STANDARD_STREAMS = 3


class Reports:
    """What the child reports to the parent by the descriptor `pipe`; when the parent is gone, lines go to the
    log."""

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


def fork_into_background(log: Path) -> Reports:
    """Return in the child. The parent waits until the child is ready and exits with 0, or with the child's
    exit code if it ends before that."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise click.ClickException(f"no log can be written: {error}") from error
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as reports:
            for line in reports:
                if line.rstrip("\n") == READY:
                    sys.exit(0)
                click.echo(line, nl=False, err=line.startswith("Error: "))
        # It has ended, or at least nothing of it can report any more.
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        click.echo(f"podling did not start (exit code {code}); its log is {log}", err=True)
        sys.exit(code if code > 0 else 1)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, descriptor in enumerate((nothing, output, output)):
        os.dup2(descriptor, stream)
    # Every inherited descriptor is closed: podling's parent may wait for the end of any of them. The end of
    # the pipe tells the parent that the child has ended; programs that the child starts do not inherit it.
    os.closerange(STANDARD_STREAMS, writing)
    os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
    return Reports(writing)
