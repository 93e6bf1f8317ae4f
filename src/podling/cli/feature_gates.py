"""`podling feature-gates`: every switch of podling, as a table or for programs."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.table import Table

from podling.cli import options
from podling.machine.instance import Instance
from podling.model.gates import GATES


@click.command("feature-gates")
@options.data_dir
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True)
def feature_gates(instance: Instance, output: str) -> None:
    """List the feature gates: stage, default, the requirement each answers, and what it switches.

    They are those of this program, in every data directory."""
    gates = sorted(GATES.values(), key=lambda gate: gate.name)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(gates)).decode())
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("NAME", "STAGE", "DEFAULT", "REQUIREMENT"):
        table.add_column(heading, no_wrap=True)
    table.add_column("WHAT IT SWITCHES", overflow="fold")
    for gate in gates:
        table.add_row(gate.name, gate.stage, str(gate.default).lower(), gate.requirement, gate.summary)
    Console().print(table)
