"""A process that divides: what the one that was started shows and answers, and what the other keeps."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

LONGEST = 20
"""Seconds that anything here may take."""
Completed = subprocess.CompletedProcess[str]


class Division(NamedTuple):
    """`end` is opened by the one that goes on as its last act, which waits for a reader."""

    log: Path
    end: Path

    def of(self, code: str, *handed_down: int) -> Completed:
        """What the one that was started did; the other goes on with `code`, which has `reports`."""
        program = (
            "import os, sys; from pathlib import Path; from podling.cli.detach import fork_into_background; "
            f"reports = fork_into_background(Path({str(self.log)!r})); {code}; "
            f"sys.stdout.flush(); open({str(self.end)!r}, 'w').close()"
        )
        return subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
            pass_fds=handed_down,
        )

    def logged(self) -> str:
        """All of the log, once the one that went on has ended."""
        reader = os.open(self.end, os.O_RDONLY | os.O_NONBLOCK)
        ending = select.poll()
        ending.register(reader)
        ended = ending.poll(LONGEST * 1000)
        os.close(reader)
        assert ended, f"it never came to its end: {self.log.read_text()}"
        return self.log.read_text()


@pytest.fixture
def division(tmp_path: Path) -> Division:
    os.mkfifo(tmp_path / "end")
    return Division(tmp_path / "data" / "podling.log", tmp_path / "end")


def test_what_is_reported_until_it_is_ready_is_shown(division: Division) -> None:
    shown = division.of("reports.line('one'); reports.line('two'); reports.ready(); reports.line('three')")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "one\ntwo\n", "")
    assert division.logged() == "three\n"


def test_the_other_goes_on_in_a_session_of_its_own(division: Division) -> None:
    code = "reports.ready(); print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    assert division.of(code).returncode == 0
    assert division.logged() == "True ''\n"


def test_a_failure_is_told_with_its_exit_code_and_where_the_log_is(division: Division) -> None:
    failed = division.of("reports.line('Error: no luck'); print('why'); sys.exit(3)")
    assert (failed.returncode, failed.stdout) == (3, "")
    assert (
        failed.stderr == f"Error: no luck\npodling did not start (exit code 3); its log is {division.log}\n"
    )
    assert division.log.read_text() == "why\n"


def test_a_line_that_nobody_waits_for_is_not_written_to_a_file_that_has_the_pipes_number(
    division: Division, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    kept = f"[open({str(other)!r}, 'wb') for n in range(9)]"
    assert division.of(f"reports.ready(); kept = {kept}; reports.line('late')").returncode == 0
    assert division.logged() == "late\n"
    assert other.read_bytes() == b""


def test_nothing_that_was_handed_down_stays_open(division: Division) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        assert division.of("reports.ready()", writing).returncode == 0
        os.close(writing)
        assert os.read(reading, 1) == b"", "ends only when nobody has the other end"
    finally:
        os.close(reading)
    division.logged()


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    command = [sys.executable, "-m", "podling", "up", "--detach", "--data-dir", str(file / "data")]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert refused.returncode == 1
    assert refused.stderr == f"Error: no log can be written: [Errno 20] Not a directory: '{file}/data'\n"
