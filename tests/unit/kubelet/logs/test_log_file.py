"""A log that was rotated is read as one, by whoever comes late and by whoever follows."""

from __future__ import annotations

import gzip
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podling.kubelet.logs.reading import READ, LogFile
from podling.kubelet.logs.rotation import compress, part_name
from unit.kubelet.files.hostile import HOSTILE, Host


class Log:
    """Written line by line and rotated by hand; `old` parts are compressed as they are rotated."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "0.log"
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.path.touch()
        self._newest: Path | None = None

    def write(self, *lines: int) -> None:
        with self.path.open("a") as log:
            log.writelines(f"{line}\n" for line in lines)

    def rotate(self) -> None:
        if self._newest is not None:
            compress(self._newest)
        self.time += timedelta(seconds=10)
        self._newest = self.path.rename(self.path.with_name(part_name("0.log", self.time)))
        self.path.touch()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """1 to 3 are compressed, 4 and 5 are in a part, 6 and 7 in the log."""
    log = Log(tmp_path)
    log.write(1, 2, 3)
    log.rotate()
    log.write(4, 5)
    log.rotate()
    log.write(6, 7)
    return log


def rest(file: LogFile) -> list[int]:
    read = b""
    while data := file.read():
        read += data
    return [int(line) for line in read.split()]


def test_all_of_it(log: Log) -> None:
    with closing(LogFile(log.path)) as file:
        assert rest(file) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("lines", range(9))
def test_the_end_of_it(log: Log, lines: int) -> None:
    with closing(LogFile(log.path, lines)) as file:
        assert rest(file) == [1, 2, 3, 4, 5, 6, 7][max(7 - lines, 0) :]


def test_parts_that_ended_before_are_not_read(log: Log) -> None:
    later = int(log.path.stat().st_mtime * 10**9) + 10**12
    with closing(LogFile(log.path, since=later)) as file:
        assert rest(file) == [6, 7]


@pytest.mark.parametrize("rotations", [1, 2, 3])
def test_whoever_follows_misses_nothing_however_often_it_is_rotated(log: Log, rotations: int) -> None:
    with closing(LogFile(log.path, 1)) as file:
        heard = rest(file)
        for number in range(rotations):
            log.write(100 + number)
            log.rotate()
        log.write(200)
        assert file.rotated()
        file.reopen()
        heard += rest(file)
        assert not file.rotated()
        assert heard == [7, *(100 + number for number in range(rotations)), 200]


def test_a_line_for_the_part_that_comes_after_the_next_file_is_there_is_not_lost(log: Log) -> None:
    """A runtime opens the next file before it lets go of the one before."""
    with closing(LogFile(log.path, 0)) as file, log.path.open("a") as written:
        log.rotate()
        file.reopen()
        assert rest(file) == []
        written.write("8\n")
        written.flush()
        log.write(9)
        assert rest(file) == [8, 9]


def test_a_log_rotated_while_it_was_opened_is_not_read_twice(log: Log) -> None:
    with closing(LogFile(log.path)) as file:
        log.rotate()
        heard = rest(file)
        file.reopen()
        assert heard + rest(file) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("kind", ["pipe", "link to a file of the host"])
def test_what_is_no_log_is_not_read(tmp_path: Path, kind: str) -> None:
    """Whoever has the directory of all logs mounted may put anything there."""
    host = Host(tmp_path / "host")
    HOSTILE[kind](tmp_path / "0.log", host.path)
    with pytest.raises(OSError):
        LogFile(tmp_path / "0.log")
    (tmp_path / "0.log").unlink()
    (tmp_path / "0.log").write_text("1\n")
    for part in ("0.log.20260102-030405", "0.log.20260102-030406.gz"):
        HOSTILE[kind](tmp_path / part, host.path)
    for tail in (None, 5):
        with closing(LogFile(tmp_path / "0.log", tail)) as file:
            assert rest(file) == [1]


@pytest.mark.parametrize("lines", [0, 1, 2, 5, 30_000, 59_999, 60_000, 60_001, 90_000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_compressed_part_is_never_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int, end: str
) -> None:
    """Of a pod that says the same again and again a small part is a large log."""
    path = tmp_path / "0.log"
    path.write_text("")
    said = list(range(60_000))
    with gzip.open(tmp_path / "0.log.20260102-030405.gz", "wt") as part:
        part.write("\n".join(map(str, said)) + end)
    asked: list[int] = []
    read = gzip.GzipFile.read

    def reading(file: gzip.GzipFile, size: int | None = -1) -> bytes:
        asked.append(-1 if size is None else size)
        return read(file, size)

    monkeypatch.setattr(gzip.GzipFile, "read", reading)
    with closing(LogFile(path, lines)) as file:
        assert rest(file) == said[max(len(said) - lines, 0) :]
    assert all(0 < size <= READ for size in asked)
