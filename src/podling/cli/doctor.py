"""`podling doctor`: check what this machine has and lacks."""

from __future__ import annotations

import subprocess
import sys

import click
from rich.console import Console
from rich.table import Table

from podling.cli import options
from podling.machine.doctor import Verdict, examine, forwarding, missing_packages
from podling.machine.instance import DEFAULT_PORT, Instance, LayoutError

SHOWN = {
    Verdict.OK: "[green]ok[/green]",
    Verdict.WARNING: "[yellow]warning[/yellow]",
    Verdict.FAILED: "[red]failed[/red]",
}


@click.command()
@options.data_dir
@click.option("--port", type=click.IntRange(1, 65535), help=f"API server port.  [default: {DEFAULT_PORT}]")
def doctor(instance: Instance, port: int | None) -> None:
    """Check kernel, cgroups, capabilities, ports and programs; exit 1 when podling cannot run here."""
    try:
        runs = instance.running() is not None
    except PermissionError:
        # A user who may not know whether podling runs here is not told that its port is taken.
        runs = True
    findings = examine({} if runs else {"API server": port or DEFAULT_PORT})
    findings += forwarding(_chains(), _pods(instance))
    table = Table(box=None, pad_edge=False)
    for heading in ("CHECK", "VERDICT", "FOUND", "WHAT TO DO"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        table.add_row(finding.what, SHOWN[finding.verdict], finding.found, finding.remedy)
    Console().print(table)
    if packages := missing_packages(findings):
        click.echo(f"\nInstall what is missing with: apt-get install {' '.join(packages)}")
    if any(finding.verdict is Verdict.FAILED for finding in findings):
        sys.exit(1)


def _chains() -> str:
    try:
        return subprocess.run(
            ["nft", "-j", "list", "chains"], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return ""


def _pods(instance: Instance) -> str:
    try:
        choices = instance.choices()
    except (LayoutError, OSError):
        return ""
    return choices.subnet if choices else ""
