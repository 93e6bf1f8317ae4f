from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from podling.cli import doctor
from podling.cli.main import main
from podling.machine.instance import Instance


def test_who_may_not_know_whether_it_runs_is_not_told_that_its_port_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def running(instance: Instance) -> int | None:
        raise PermissionError(13, "Permission denied", "/run/podling/x/lock")

    def examine(ports: dict[str, int]) -> list[object]:
        asked.append(ports)
        return []

    asked: list[dict[str, int]] = []
    monkeypatch.setattr(Instance, "running", running)
    monkeypatch.setattr(doctor, "examine", examine)
    assert CliRunner().invoke(main, ["doctor", "--data-dir", str(tmp_path)]).exit_code == 0
    assert asked == [{}]
