"""Logs that have grown too long are begun anew, on real files."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.interface import RuntimeFault
from podling.kubelet.config import KubeletConfig
from podling.kubelet.logs.rotation import LogRotator, WrittenLog
from unit.kubelet.files.hostile import Host


class Reopening(HollowRuntime):
    """A runtime that writes one log."""

    def __init__(self, reopen: Callable[[str], Awaitable[None]]) -> None:
        super().__init__({})
        self._reopen = reopen

    async def reopen_container_log(self, container_id: str) -> None:
        await self._reopen(container_id)


class Logs:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "0.log"
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.fault: RuntimeFault | None = None
        config = KubeletConfig("n", directory, directory, log_max_bytes=10, log_max_files=3)
        written = [WrittenLog("c", self.path)]
        self._rotator = LogRotator(config, Reopening(self._reopen), self, lambda: written)

    def now(self) -> datetime:
        return self.time

    async def _reopen(self, container_id: str) -> None:
        if self.fault:
            raise self.fault
        self.path.touch()

    async def write(self, text: str) -> dict[str, str]:
        """And rotate: every file with what is in it."""
        with self.path.open("a") as log:
            log.write(text)
        await self._rotator.look()
        self.time += timedelta(seconds=10)
        return {path.name: _read(path) for path in self.path.parent.iterdir()}


def _read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


async def test_a_log_that_is_too_long_becomes_a_part(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    assert await logs.write("short") == {"0.log": "short"}
    assert await logs.write(" and long") == {"0.log": "", "0.log.20260102-030415": "short and long"}


async def test_older_parts_are_compressed_and_the_oldest_removed(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    await logs.write("first part")
    assert await logs.write("second part") == {
        "0.log": "",
        "0.log.20260102-030405.gz": "first part",
        "0.log.20260102-030415": "second part",
    }
    assert await logs.write("third part") == {
        "0.log": "",
        "0.log.20260102-030415.gz": "second part",
        "0.log.20260102-030425": "third part",
    }


async def test_a_log_the_runtime_does_not_reopen_keeps_its_name(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.fault = RuntimeFault("UNAVAILABLE", "connection refused")
    assert await logs.write("a long text") == {"0.log": "a long text"}
    logs.fault = None
    assert await logs.write("") == {"0.log": "", "0.log.20260102-030415": "a long text"}


async def test_a_log_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    await logs.write("x")
    logs.path.unlink()
    await logs._rotator.look()
    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_written_or_read_through_a_link(tmp_path: Path) -> None:
    """Whoever has the directory of all logs mounted may put one there."""
    host = Host(tmp_path / "host")
    (tmp_path / "logs").mkdir()
    logs = Logs(tmp_path / "logs")
    await logs.write("first part")
    (tmp_path / "logs/0.log.20260102-030405.tmp").symlink_to(host.path / "file")
    assert (await logs.write("second part"))["0.log.20260102-030405.gz"] == "first part"
    (tmp_path / "logs/0.log.20260102-030415").unlink()
    (tmp_path / "logs/0.log.20260102-030415").symlink_to(host.path / "file")
    await logs.write("third part")
    assert not (tmp_path / "logs/0.log.20260102-030415.gz").exists()
    host.assert_untouched()
