"""Directories as others change them, told by inotify."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from asyncinotify import Inotify, Mask

from podling.process.directories import AT_ONCE, Happened, followed


class Heard:
    """What is told of a directory, one by one."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Happened] = asyncio.Queue()

    def tell(self, happened: Happened) -> None:
        self._queue.put_nowait(happened)

    async def next(self) -> Happened:
        async with asyncio.timeout(5):
            return await self._queue.get()

    @property
    def is_silent(self) -> bool:
        return self._queue.empty()


def instances() -> int:
    """How many this process has."""
    return sum(_target(one) == "anon_inode:inotify" for one in Path("/proc/self/fd").iterdir())


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def test_many_directories_take_one_instance_and_none_takes_none(
    tmp_path: Path, stack: ExitStack
) -> None:
    before, heard = instances(), [Heard() for _ in range(200)]
    with ExitStack() as own:
        for n, one in enumerate(heard):
            (directory := tmp_path / str(n)).mkdir()
            own.enter_context(followed(directory, Mask.CREATE, one.tell))
        assert instances() == before + 1
        (tmp_path / "7" / "a").touch()
        assert await heard[7].next() == Happened(Mask.CREATE, "a")
        assert all(one.is_silent for one in heard)
    assert instances() == before


async def test_each_hears_what_it_asked_for_of_the_same_directory(tmp_path: Path, stack: ExitStack) -> None:
    makes, ends = Heard(), Heard()
    stack.enter_context(followed(tmp_path, Mask.CREATE, makes.tell))
    with followed(tmp_path / ".." / tmp_path.name, Mask.CREATE | Mask.DELETE, ends.tell):
        (tmp_path / "a").touch()
        (tmp_path / "a").unlink()
        assert [await ends.next() for _ in "12"] == [Happened(Mask.CREATE, "a"), Happened(Mask.DELETE, "a")]
        assert await makes.next() == Happened(Mask.CREATE, "a") and makes.is_silent
    (tmp_path / "b").touch()
    assert await makes.next() == Happened(Mask.CREATE, "b") and ends.is_silent


async def test_a_directory_that_goes_is_told_and_may_come_again(tmp_path: Path) -> None:
    heard, again, before = Heard(), Heard(), instances()
    (directory := tmp_path / "a").mkdir()
    with followed(directory, Mask.CREATE, heard.tell):
        directory.rmdir()
        assert (await heard.next()).mask & Mask.IGNORED
        directory.mkdir()
        with followed(directory, Mask.CREATE, again.tell):
            (directory / "b").touch()
            assert await again.next() == Happened(Mask.CREATE, "b") and heard.is_silent
    assert instances() == before


async def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    before = instances()
    with pytest.raises(FileNotFoundError), followed(tmp_path / "none", Mask.CREATE, Heard().tell):
        pass
    assert instances() == before


async def test_many_events_come_in_several_turns(tmp_path: Path, stack: ExitStack) -> None:
    heard = Heard()
    stack.enter_context(followed(tmp_path, Mask.CREATE, heard.tell))
    names = [str(n) for n in range(3 * AT_ONCE + 1)]
    for name in names:
        (tmp_path / name).touch()
    assert await heard.next() == Happened(Mask.CREATE, "0")
    assert heard._queue.qsize() < 2 * AT_ONCE
    assert [(await heard.next()).name for _ in names[1:]] == names[1:]


async def test_of_events_that_were_lost_all_are_told(
    tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Heard(), Heard()
    (tmp_path / "a").mkdir()
    stack.enter_context(followed(tmp_path, Mask.CREATE, one.tell))
    stack.enter_context(followed(tmp_path / "a", Mask.CREATE, other.tell))

    class Overflown:
        watch, mask, name = None, Mask.Q_OVERFLOW, None

    said = iter([Overflown()])
    monkeypatch.setattr(Inotify, "sync_get", lambda _: next(said, None))
    (tmp_path / "b").touch()
    assert (await one.next()).mask == (await other.next()).mask == Mask.Q_OVERFLOW
