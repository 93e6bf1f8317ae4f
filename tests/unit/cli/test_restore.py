from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from podling.cli.main import main


@pytest.mark.parametrize("given", [[], ["backup.tar", "--accept-loss"]])
def test_a_file_or_what_is_there(given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "backup.tar").touch()
    shown = CliRunner().invoke(main, ["restore", *given, "--data-dir", str(tmp_path / "data")])
    assert (shown.exit_code, "give either a FILE or --accept-loss" in shown.output) == (2, True)
    assert not (tmp_path / "data").exists()
