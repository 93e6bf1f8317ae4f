"""What scripts/test.sh ends with, as it decides whether a change may land; its programs are stand-ins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/test.sh"


@pytest.mark.parametrize(
    ("failing", "status"),
    [
        ("nothing", 0),
        ("mypy", 1),
        ("tests/unit", 1),
        ("tests/contract tests/e2e tests/peer", 1),
    ],
)
def test_the_script_ends_with_0_only_when_all_of_it_passes(tmp_path: Path, failing: str, status: int) -> None:
    script = tmp_path / "scripts/test.sh"
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    stand_in = f'#!/bin/sh\ncase "$0 $*" in *"{failing}"*) exit 1;; esac\n'
    checks = map(programs.joinpath, ("ruff", "mypy", "lint-imports", "pytest"))
    for program in (script.with_name("setup.sh"), *checks):
        program.write_text(stand_in)
        program.chmod(0o755)
    assert subprocess.run([script], capture_output=True, check=False).returncode == status
