"""A copy that is ended ends, however much a container sends; and what it sends commands no terminal."""

from __future__ import annotations

import asyncio
import io
import threading
from typing import Any

import pytest

from podling.debug.container import pod_path
from podling.remote.copying import MOST_TOLD, CopyError, Files, _beside_loop, _Reading, _Tally
from podling.remote.streams import Ended
from podling.remote.terminal import Narrator


class Endless:
    """A stream that always has more."""

    async def read(self) -> bytes:
        return bytes(64 * 1024)


async def test_a_thread_that_unpacks_ends_with_the_copy() -> None:
    """Also where what it waits for is always there, so that no wait of its own is ended."""
    stream: Any = Endless()
    reading = _Reading(stream, asyncio.get_running_loop())
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        try:
            while reading.read(1024):
                begun.set()
        except OSError:
            ended.set()

    async with asyncio.TaskGroup() as tasks:
        copying = tasks.create_task(_beside_loop(reading, work))
        await asyncio.to_thread(begun.wait, 10)
        copying.cancel()
    assert await asyncio.to_thread(ended.wait, 10)


def test_errors_are_counted_and_show_no_commands() -> None:
    tally = _Tally(Narrator(quiet=True), io.BytesIO())
    for number in range(MOST_TOLD + 5):
        tally.failed(f"./\x1b]0;{number}\x07\n\x9b\udcff", "no")
    found = tally.outcome()
    assert (len(found.errors), found.more) == (MOST_TOLD, 5)
    assert found.errors[0] == "^[]0;0^G\\n\\u009b\N{REPLACEMENT CHARACTER}: no"


def test_progress_is_one_line_that_is_drawn_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter((0.0, 0.1, 2.0, 2.1, 4.0))
    monkeypatch.setattr("podling.remote.copying.time.monotonic", lambda: next(now))
    narrator = Narrator()
    narrator.is_live = True
    tally = _Tally(narrator, io.BytesIO())
    for _ in range(4):
        tally.passed(1024 * 1024)
        tally.copied("x", "digest")
    narrator.clear()
    erase = "\r\x1b[2K"
    shown = [f"{erase}1 files, 2.0 MiB, 1.0 MiB/s", f"{erase}3 files, 4.0 MiB, 1.0 MiB/s", erase]
    assert capsys.readouterr() == ("", "".join(shown))


@pytest.mark.parametrize("said", [b"", b"file", b"file\nmany\n/a", b"file\n" + b"9" * 5000 + b"\n/a"])
async def test_a_shell_that_says_nonsense_is_told_of(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*_: str) -> tuple[Ended, bytes, str]:
        return Ended(0), said, ""

    nothing: Any = None
    files = Files(nothing, nothing, "app", "", (0, 0))
    monkeypatch.setattr(files, "run", run)
    with pytest.raises(CopyError, match="/a: the container's shell"):
        await files.look("/a")


def test_paths_of_pods() -> None:
    assert pod_path("a", "b", "log") == "/api/v1/namespaces/a/pods/b/log"
    assert pod_path("a") == "/api/v1/namespaces/a/pods" and pod_path() == "/api/v1/pods"
