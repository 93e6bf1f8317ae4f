"""`podling up`: start a podling and stay with it, or leave it running."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import IO, Any

import click

from podling.cli import options
from podling.instance import DEFAULT_PORT, Instance

READY = "ready"


@click.command()
@options.data_dir
@click.option("--port", type=click.IntRange(1, 65535), help=f"API server port.  [default: {DEFAULT_PORT}]")
@click.option("--detach", "-d", is_flag=True, help="Return when the node is ready; stop with `podling down`.")
@options.node
@options.audit_log
@click.option("--report-fd", type=int, hidden=True)
def up(
    instance: Instance,
    port: int | None,
    detach: bool,
    audit_log: str,
    report_fd: int | None,
    **node: Any,
) -> None:
    """Start API server, scheduler, controllers and kubelet in one process, and a containerd beside it."""
    if detach:
        _detach(instance)
        return
    # Not needed to start one that is left running, and half of what a start takes is importing it.
    from podling.assemble.node_options import NodeOptions
    from podling.assemble.up import StartError, UpOptions, run

    chosen = UpOptions(instance, port, NodeOptions(**node), audit_log)
    report = click.echo if report_fd is None else _reporter(report_fd)
    try:
        run(chosen, report, lambda: _ready(report, report_fd, instance))
    except StartError as error:
        message = f"Error: {error}"
        click.echo(message, err=True) if report_fd is None else report(message)
        sys.exit(1)


def _ready(report: Callable[[str], None], report_fd: int | None, instance: Instance) -> None:
    report(f"kubectl --kubeconfig {instance.kubeconfig} get nodes")
    if report_fd is not None:
        report(READY)
        os.close(report_fd)


def _reporter(fd: int) -> Callable[[str], None]:
    """Lines to the starting command, which shows them; it may be gone already."""
    # What podling starts must not hold the pipe open: its end tells that podling has ended.
    os.set_inheritable(fd, False)

    def report(line: str) -> None:
        try:
            os.write(fd, f"{line}\n".encode())
        except OSError:
            click.echo(line)

    return report


def _detach(instance: Instance) -> None:
    """Run the same command in a session of its own, and show what it reports until it is ready."""
    reading, writing = os.pipe()
    instance.data_dir.mkdir(parents=True, exist_ok=True)
    with open(instance.log_file, "ab") as log, os.fdopen(reading) as reports:
        arguments = [argument for argument in sys.argv[1:] if argument not in ("--detach", "-d")]
        child = subprocess.Popen(
            [sys.executable, "-m", "podling", *arguments, "--report-fd", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(writing,),
        )
        os.close(writing)
        if not _show(reports):
            code = child.wait()
            click.echo(f"podling did not start (exit code {code}); its log is {instance.log_file}", err=True)
            sys.exit(1)
    # The child outlives this command on purpose; `podling down` ends it.
    child.returncode = 0


def _show(reports: IO[str]) -> bool:
    for line in reports:
        if line.rstrip("\n") == READY:
            return True
        failed = line.startswith("Error: ")
        click.echo(line, nl=False, err=failed)
    return False
