"""A log may be of any length: it costs what it is long, takes no more memory for it, and the loop goes on."""

from __future__ import annotations

import gzip
import io
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.kubelet.logs.format import (
    LONGEST_LINE,
    LogFormatter,
    LogOptions,
    fixed_width,
    nanoseconds,
    parse_line,
    tail_offset,
)
from podling.kubelet.logs.reading import LogFile, send_log

if TYPE_CHECKING:
    from unit.conftest import Linear

LINE = b"2016-10-06T00:17:09.669794202Z stdout F x\n"
NANOSECONDS_LATER = 2_000_000_000 * 10**9


def formatted(data: bytes) -> None:
    formatter = LogFormatter(LogOptions(timestamps=True))
    for at in range(0, len(data), 4096):
        formatter.feed(data[at : at + 4096])
    formatter.end()


TABLE: dict[str, tuple[int, Callable[[int], bytes], Callable[[bytes], object]]] = {
    "lines": (4_000, lambda n: LINE * n, formatted),
    "one line without end": (400_000, lambda n: b"x" * n, formatted),
    "a line": (400_000, lambda n: LINE[:-1] + b" " * n, parse_line),
    "a time": (100_000, lambda n: b"2016-10-06T00:17:09." + b"1" * n + b"Z", nanoseconds),
    "a time in full": (100_000, lambda n: b"2016-10-06T00:17:09." + b"1" * n + b"Z", fixed_width),
    "the last lines": (400_000, lambda n: b"\n" * n, lambda log: tail_offset(io.BytesIO(log), len(log) // 2)),
}


@pytest.mark.parametrize("name", TABLE)
def test_costs_what_it_is_long(assert_linear: Linear, name: str) -> None:
    n, make, run = TABLE[name]
    assert_linear(make, run, n)


def test_a_line_that_does_not_end_is_left_out_and_not_kept() -> None:
    formatter = LogFormatter(LogOptions())
    for _ in range(LONGEST_LINE // 65536 + 2):
        assert formatter.feed(b"y" * 65536) == b""
    assert formatter.feed(b"y\n" + LINE) == b"x\n"
    assert formatter.feed(b"y" * (LONGEST_LINE + 1)) == b""
    assert formatter.end() == b""


@pytest.mark.parametrize("tail", [None, 1, 160_000])
async def test_a_long_log_takes_no_memory_and_is_read_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: int | None
) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(LINE * 16_000)
    with gzip.open(tmp_path / "0.log.20260102-030405.gz", "wb", compresslevel=1) as part:
        length = part.write(LINE * 64_000)
    threads = set()
    read = LogFile.read

    def reading(file: LogFile) -> bytes:
        threads.add(threading.current_thread())
        return read(file)

    monkeypatch.setattr(LogFile, "read", reading)

    async def write(_: bytes) -> None: ...

    tracemalloc.start()
    try:
        await send_log(path, LogOptions(since=NANOSECONDS_LATER), write, tail_lines=tail)
        assert tracemalloc.get_traced_memory()[1] < (path.stat().st_size + length) // 2
    finally:
        tracemalloc.stop()
    assert threads and threading.main_thread() not in threads
    with closing(LogFile(path, tail)) as file:
        assert file.read()
