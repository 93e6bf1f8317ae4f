"""R-CLI: what a recording keeps of a session, read as a player reads it."""

from __future__ import annotations

import itertools
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as some

from podling.remote.recording import Recording, recording

SIZE = (80, 24)


def nobody_hears(_: str) -> None: ...


@contextmanager
def recorded(
    file: Path, *, keeps_input: bool = True, now: Callable[[], float] = time.monotonic
) -> Iterator[Recording]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    environment = {"TERM": "xterm", "HOME": "/root"}
    try:
        yield Recording(
            descriptor, SIZE, began=1767323045.6, environment=environment, keeps_input=keeps_input, now=now
        )
    finally:
        os.close(descriptor)


def played(file: Path) -> str:
    """The screen at the end."""
    header, *events = [json.loads(line) for line in file.read_bytes().splitlines()]
    screen = pyte.Screen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    for _, code, data in events:
        if code == "r":
            columns, _, rows = data.partition("x")
            screen.resize(int(rows), int(columns))
        elif code == "o":
            stream.feed(data)
    return "\n".join(line.rstrip() for line in screen.display).rstrip()


def test_events_stand_where_they_were_in_time(tmp_path: Path) -> None:
    file = tmp_path / "x.cast"
    with recorded(file, now=iter([5.0, 5.25, 6.5, 6.5, 7.0]).__next__) as made:
        made.shown(b"a\nb")
        made.typed(b"ls\r")
        made.sized(*SIZE)
        made.sized(100, 30)
        made.shown(b"a\nb", raw=True)
    header, *events = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert header == {
        "version": 2,
        "width": 80,
        "height": 24,
        "timestamp": 1767323045,
        "env": {"TERM": "xterm"},
    }
    assert events == [[0.25, "o", "a\r\nb"], [1.5, "i", "ls\r"], [1.5, "r", "100x30"], [2.0, "o", "a\nb"]]


@given(text=some.text(), cuts=some.lists(some.integers(0, 40)))
def test_characters_are_whole_wherever_pieces_end(
    text: str, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("cut") / "x.cast"
    whole = text.encode(errors="replace")
    with recorded(file) as made:
        ends = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
        for start, end in itertools.pairwise(ends):
            made.shown(whole[start:end], raw=True)
    events = [json.loads(line) for line in file.read_bytes().splitlines()][1:]
    assert "".join(data for _, _, data in events).encode() == whole


def test_what_is_typed_is_kept_only_where_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "x.cast"
    with recorded(file, keeps_input=False) as made:
        made.typed(b"secret\r")
    assert "secret" not in file.read_text()


def test_each_event_is_in_the_file_when_it_happened(tmp_path: Path) -> None:
    """A program that is killed leaves a file that plays to that point."""
    file = tmp_path / "x.cast"
    with recorded(file) as made:
        made.shown(b"\x1b[2Jone\n")
        assert played(file) == "one"
        before = file.read_bytes()
        made.sized(40, 10)
        assert file.read_bytes().startswith(before) and file.read_bytes().endswith(b'"r","40x10"]\n')


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    file, told = tmp_path / "x.cast", list[str]()
    with recording(file, SIZE, "podling debug web", keeps_input=False, tell=told.append):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["command"] == "podling debug web"
    assert told == [f"Recorded in {file}."]
    before = file.read_bytes()
    with (
        pytest.raises(FileExistsError),
        recording(file, SIZE, "", keeps_input=False, tell=nobody_hears),
    ):
        pass
    assert file.read_bytes() == before


def test_a_disk_that_is_full_ends_the_recording_not_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file still ends with a whole line."""
    file, told, write = tmp_path / "x.cast", list[str](), os.write
    left = 300

    def little_room(descriptor: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(28, "No space left on device")
        done = write(descriptor, data[:left])
        left -= done
        return done

    monkeypatch.setattr(os, "write", little_room)
    with recording(file, SIZE, "", keeps_input=False, tell=told.append) as made:
        for _ in range(10):
            made.shown(b"x" * 50)
    assert told == [f"{file} ends early: [Errno 28] No space left on device"]
    # How many lines fit is up to the environment in the header and to the digits of the times.
    kept = played(file).replace("\n", "")
    assert kept and set(kept) == {"x"} and len(kept) % 50 == 0 and len(kept) < 500
