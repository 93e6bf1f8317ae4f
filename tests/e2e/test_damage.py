"""Disks that lose, change or refuse something: one sentence, an exit code of its own, and no silent loss.

An API server alone shows it: what it starts from is what `podling up` starts from.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Part, Podling

DAMAGED, REFUSED = 4, 1


class Alone:
    """An API server alone, and what its start says."""

    def __init__(self, podling: Podling, make_part: Callable[..., Part]) -> None:
        self.podling = podling
        self.directory: Path = podling.instance.data_dir
        self.directory.mkdir(exist_ok=True)
        at = ["--data-dir", str(self.directory), "--port", str(podling.port)]
        self._part = make_part(["apiserver", *at], self.directory.with_name("apiserver.log"))

    def start(self) -> None:
        self._part.start("API server on ")

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._part.end(number)

    def write(self, name: str) -> None:
        self.podling.kubectl("create", "configmap", name, "--from-literal=value=1")

    def refused(self, code: int) -> str:
        """The one sentence it says, starting."""
        refused = self.podling.command("apiserver", "--port", str(self.podling.port), check=False)
        assert (refused.returncode, refused.stdout) == (code, ""), refused
        (line,) = refused.stderr.splitlines()
        assert line.startswith("Error: "), line
        return line.removeprefix("Error: ")


@pytest.fixture
def alone(make_podling: Callable[[], Podling], make_part: Callable[..., Part]) -> Iterator[Alone]:
    server = Alone(make_podling(), make_part)
    yield server
    server.end(signal.SIGKILL)


def test_writes_that_a_lost_write_ahead_log_held_are_missed(alone: Alone) -> None:
    alone.start()
    alone.podling.kubectl("create", "namespace", "default", check=False)
    alone.write("kept")
    alone.end(signal.SIGKILL)
    log = alone.directory / "state.db-wal"
    held = log.read_bytes()
    log.unlink()
    why = alone.refused(DAMAGED)
    assert f"{alone.directory}/state.db is damaged: " in why
    assert "was acknowledged (has state.db-wal been lost?); go back to a backup with `podling restore`" in why
    assert why.endswith("or give up what was lost with `podling restore --accept-loss`")
    log.write_bytes(held)
    alone.start()
    assert alone.podling.get("configmap", "kept")["data"] == {"value": "1"}


def test_a_disk_that_is_full_or_read_only_is_named(alone: Alone) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", alone.directory], check=True)
    try:
        (alone.directory / "ballast").write_bytes(bytes(1 << 20))
        assert alone.refused(REFUSED).endswith("No space left on device")
        (alone.directory / "ballast").unlink()
        alone.start()
        alone.end()
        subprocess.run(["mount", "-o", "remount,ro", alone.directory], check=True)
        assert alone.refused(REFUSED).endswith("Read-only file system")
    finally:
        alone.end(signal.SIGKILL)
        subprocess.run(["umount", alone.directory], check=True)


def test_a_lost_key_of_the_authority_is_not_replaced(alone: Alone) -> None:
    alone.start()
    alone.end()
    key = alone.directory / "pki/ca.key"
    kept = key.read_bytes()
    key.unlink()
    assert f"{key} is missing beside {key.with_suffix('.crt')}: " in alone.refused(DAMAGED)
    key.write_bytes(kept)
    alone.start()
    assert alone.podling.kubectl("get", "--raw", "/readyz").stdout == "ok"
