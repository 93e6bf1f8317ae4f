"""`podling feature-gates`, and its table in the documentation, say what the table of gates says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from podling.cli.main import main
from podling.model.gates import GATES, Gate

DOCUMENT = Path(__file__).parents[3] / "docs/gates.md"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["feature-gates", *arguments], env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    return done.output


def test_the_table_has_a_line_for_every_gate() -> None:
    lines = run().splitlines()[1:]
    shown = [re.split(r"\s{2,}", line.strip()) for line in lines]
    expected = [
        [gate.name, gate.stage, str(gate.default).lower(), gate.requirement, gate.summary]
        for gate in sorted(GATES.values(), key=lambda gate: gate.name)
    ]
    assert shown == expected


def test_programs_get_json() -> None:
    listed = json.loads(run("-o", "json"))
    assert {gate["name"] for gate in listed} == GATES.keys()
    assert all(GATES[gate["name"]] == Gate(**gate) for gate in listed)


@pytest.mark.parametrize("gate", GATES.values(), ids=lambda gate: gate.name)
def test_every_gate_is_in_the_documentation(gate: Gate) -> None:
    line = f"| `{gate.name}` | {gate.stage} | {'on' if gate.default else 'off'} | {gate.summary} |"
    assert line in DOCUMENT.read_text().splitlines()
