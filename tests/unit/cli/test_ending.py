from __future__ import annotations

import pytest

from podling.cli.ending import exit_on_start_error
from podling.machine.start import DamagedError, StartError


@pytest.mark.parametrize(("error", "code"), [(StartError("no room"), 1), (DamagedError("no room"), 4)])
def test_a_command_says_why_it_ends(error: StartError, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, exit_on_start_error():
        raise error
    assert ended.value.code == code
    assert capsys.readouterr() == ("", "Error: no room\n")


def test_who_waits_for_a_command_is_told_instead(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    with pytest.raises(SystemExit), exit_on_start_error(told.append):
        raise StartError("no room")
    assert told == ["Error: no room"]
    assert capsys.readouterr() == ("", "")
